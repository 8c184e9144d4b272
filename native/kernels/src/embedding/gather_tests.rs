//! Gather against its oracle, forward and back.

use super::embedding_gather::{self, Backward, Forward, Positions};
use super::naive::Gather;
use super::tests::{TOLERANCE, bits_of, halves, ids};
use crate::Ctx;
use crate::fault::FaultKind;
use crate::mat::{Mat, MatMut};
use crate::rng::{Dropout, Key};
use crate::rows::Rows;
use crate::testing::*;

#[test]
fn gather_matches_its_oracle_forward_and_back() {
    let contexts = contexts();
    let batches: [&[i32]; 6] = [
        &[0],
        &[0, 0, 0],
        &[0, 1],
        &[0, 5, 5, 69],
        &[0, 64, 128, 129],
        &[0, 3, 3, 70, 71, 200],
    ];
    for (i, offsets) in batches.into_iter().enumerate() {
        let (t, d, v) = (offsets[offsets.len() - 1] as usize, [50, 8, 1, 17, 64, 100][i], 40);
        let longest = offsets.windows(2).map(|w| w[1] - w[0]).max().unwrap_or(0) as usize;
        let positions = (i != 2).then(|| (numbers(5, (longest + 2) * d), offsets.to_vec()));
        let dropout = if i % 2 == 0 {
            Dropout::off()
        } else {
            Dropout::new(Key::new(3, 2, 1), 0.3)
        };
        let p = Gather {
            width: d,
            table: halves(1, v * d),
            ids: ids(2, t, v),
            scale: 7.07,
            positions,
            dropout,
        };
        let before = if i % 3 == 0 {
            numbers(6, t * d)
        } else {
            vec![0.0; t * d]
        };
        let want = p.forward(&before);
        let dout = numbers(7, t * d);
        let (dx_want, dpos_want) = p.backward(&dout);
        let (table, packed) = (Padded::from(&p.table, v, d), bits_of(&p.table));
        for half in [false, true] {
            let runs = on_every_context(&contexts, |cx| {
                let mut out = if i % 3 == 0 {
                    Padded::from(&before, t, d)
                } else {
                    Padded::unset(t, d)
                };
                let places = longest + 2;
                let pos = p.positions.as_ref().map(|(table, _)| Padded::from(table, places, d));
                let args = Forward {
                    table: if half {
                        Rows::F16(Mat::new(&packed, v, d))
                    } else {
                        Rows::F32(table.mat())
                    },
                    ids: &p.ids,
                    scale: 7.07,
                    positions: pos.as_ref().map(|pos| Positions {
                        table: pos.mat(),
                        offsets,
                    }),
                    dropout,
                    accumulate: i % 3 == 0,
                    out: out.mat_mut(),
                };
                embedding_gather::forward(cx, args).expect("a clean run");
                let (mut dx, mut dpos) = (Padded::from(&dout, t, d), Padded::unset(places, d));
                let positions = pos.is_some().then(|| Positions {
                    table: dpos.overwrite(),
                    offsets,
                });
                embedding_gather::backward(
                    cx,
                    Backward {
                        dropout,
                        dx: dx.mat_mut(),
                        positions,
                    },
                )
                .expect("a clean run");
                if pos.is_none() {
                    dpos = Padded::from(&[], 0, d);
                }
                vec![out, dx, dpos]
            });
            for run in runs {
                run[0].assert_close(&want, TOLERANCE, "out");
                run[1].assert_close(&dx_want, TOLERANCE, "dx");
                run[2].assert_close(&dpos_want, TOLERANCE, "dpos");
            }
        }
    }
}

#[test]
fn gather_refuses_sequences_longer_than_the_positions() {
    let (table, pos, mut out) = ([0.0; 4], [0.0; 4], [0.0; 6]);
    let args = Forward {
        table: Rows::F32(Mat::new(&table, 2, 2)),
        ids: &[0, 1, 1],
        scale: 1.0,
        positions: Some(Positions {
            table: Mat::new(&pos, 2, 2),
            offsets: &[0, 3],
        }),
        dropout: Dropout::off(),
        accumulate: false,
        out: MatMut::new(&mut out, 3, 2),
    };
    let fault = embedding_gather::forward(&Ctx::new(1), args).expect_err("a fault");
    assert_eq!((fault.kind, fault.input), (FaultKind::Range, "offsets"));
}

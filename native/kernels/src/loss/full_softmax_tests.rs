//! The softmax over all items against its oracle: in one block, in several, and streamed.

use super::naive::Objective;
use super::tests::{assert_matches, assert_on_every_context, problem, run};
use crate::Ctx;
use crate::testing::contexts;

const PLAIN: Objective = Objective::FullSoftmax { smoothing: 0.0 };
const SMOOTHED: Objective = Objective::FullSoftmax { smoothing: 0.1 };

#[test]
fn full_softmax_matches_its_oracle() {
    let contexts = contexts();
    for (i, shape) in [
        [0, 8, 0, 5],
        [1, 3, 0, 1],
        [7, 50, 0, 33],
        [97, 16, 0, 17],
        [193, 65, 0, 100],
    ]
    .into_iter()
    .enumerate()
    {
        for normalize in [(true, true), (i % 2 == 0, i % 2 == 1)] {
            for objective in [PLAIN, SMOOTHED] {
                let p = problem(shape, objective, normalize);
                assert_on_every_context(&p, &contexts, &format!("full {shape:?} {normalize:?}"));
            }
        }
    }
}

#[test]
fn full_softmax_in_several_blocks_is_the_same_function() {
    // 30,000 items leave 192 tokens per block.
    for objective in [PLAIN, SMOOTHED] {
        let p = problem([200, 4, 0, 30_000], objective, (true, false));
        let got = run(&Ctx::new(2), &p, false).expect("a clean run");
        assert_matches(&got, &p.solve(), "blocks");
    }
}

#[test]
fn a_large_catalogue_is_streamed_to_the_same_function() {
    // Above the stored size; tokens straddle the tiles, the last round is short.
    let contexts = contexts();
    for (shape, normalize, objective) in [
        ([7, 5, 0, 33_000], (true, true), PLAIN),
        ([7, 5, 0, 33_000], (true, true), SMOOTHED),
        ([97, 17, 0, 32_769], (false, false), PLAIN),
        ([97, 17, 0, 32_769], (false, true), SMOOTHED),
    ] {
        let p = problem(shape, objective, normalize);
        assert_on_every_context(&p, &contexts, &format!("streamed {shape:?}"));
    }
}

#[test]
fn streaming_and_storing_agree_whatever_the_sizes_of_logits() {
    for scale in [1.0, 1e3, 1e6] {
        let mut p = problem([40, 16, 0, 33_000], PLAIN, (false, false));
        p.u.iter_mut().for_each(|x| *x *= scale);
        p.positives[7] = 32_999;
        let got = run(&Ctx::new(2), &p, false).expect("finite");
        assert_matches(&got[..1], &p.solve(), "streamed loss");
    }
}

#[test]
fn streaming_needs_memory_that_does_not_depend_on_the_catalogue() {
    let peak = |items: usize| {
        let cx = Ctx::new(2);
        run(&cx, &problem([64, 8, 0, items], SMOOTHED, (true, true)), false).expect("a clean run");
        cx.arena.reserved_bytes()
    };
    assert_eq!(peak(20 * 2048), peak(80 * 2048));
}

//! Input that attention refuses.

use super::super::*;
use super::cases::{Case, Clock};
use crate::mat::MatMut;
use crate::{Ctx, FaultKind};

#[test]
fn bad_input_is_refused_by_name() {
    let cx = Ctx::new(1);
    let data = Case::biased(&[5, 7], 2, 8, 8, Clock::Ascending).data();
    let mut o = vec![0.0; data.tokens() * 16];
    let o = MatMut::new(&mut o, data.tokens(), 16);
    let refuse = |x: Inputs, kind: FaultKind, input: &str, got: &str| {
        let fault = hstu_attention::forward(&cx, &Forward { x, o }).unwrap_err();
        assert_eq!(
            (fault.kind, fault.op, fault.input),
            (kind, "hstu_attention", input),
            "{fault}"
        );
        assert!(fault.got.contains(got), "{fault}");
    };
    let x = data.inputs();
    let narrow = |view: Panels| view.plain().unwrap().columns(0, 8).into();
    let bias = x.bias.unwrap();
    let time = bias.time.unwrap();
    let with_time = |time: TimeBias<'static>| Inputs {
        bias: Some(Bias {
            time: Some(time),
            ..bias
        }),
        ..x
    };
    fn leak(times: &[i64], at: usize, to: i64) -> &'static [i64] {
        let mut times = times.to_vec();
        times[at] = to;
        times.leak()
    }
    let owned = TimeBias {
        term: TimeTerm::Buckets(time.term.weights().to_vec().leak()),
        times: leak(time.times, 0, time.times[0]),
        query_times: leak(time.query_times, 0, time.query_times[0]),
    };
    refuse(
        Inputs {
            offsets: &[0, 8, 5, 12],
            ..x
        },
        FaultKind::Offsets,
        "offsets",
        "offsets[1] = 8",
    );
    refuse(Inputs { offsets: &[0, 5], ..x }, FaultKind::Offsets, "offsets", "5");
    refuse(
        Inputs { n: 6, ..x },
        FaultKind::Range,
        "offsets",
        "sequence 1 of 7 tokens",
    );
    refuse(Inputs { n: 0, ..x }, FaultKind::Argument, "n", "0");
    refuse(Inputs { heads: 0, ..x }, FaultKind::Argument, "heads", "0");
    refuse(Inputs { heads: 3, ..x }, FaultKind::Shape, "q", "16");
    refuse(Inputs { k: narrow(x.k), ..x }, FaultKind::Shape, "k", "12 x 8");
    refuse(Inputs { v: narrow(x.v), ..x }, FaultKind::Shape, "o", "12 x 16");
    refuse(
        Inputs {
            bias: Some(Bias {
                pos_w: &[0.0; 3],
                ..bias
            }),
            ..x
        },
        FaultKind::Shape,
        "pos_w",
        "3",
    );
    refuse(
        with_time(TimeBias {
            term: TimeTerm::Buckets(&[0.0; 128]),
            ..owned
        }),
        FaultKind::Shape,
        "ts_w",
        "128",
    );
    let power = |weights, unit| {
        let term = TimeTerm::Power { weights, unit };
        with_time(TimeBias { term, ..owned })
    };
    refuse(power(&[0.0; 2], 1.0), FaultKind::Shape, "ts_w", "2");
    refuse(power(&[0.0; 3], 0.0), FaultKind::Argument, "time unit", "0");
    refuse(power(&[0.0; 3], f32::INFINITY), FaultKind::Argument, "time unit", "inf");
    refuse(
        with_time(TimeBias { times: &[1], ..owned }),
        FaultKind::Shape,
        "times",
        "1",
    );
    let negative = leak(time.times, 4, -1);
    refuse(
        with_time(TimeBias {
            times: negative,
            ..owned
        }),
        FaultKind::Timestamp,
        "times",
        "-1 at index 4",
    );
    let huge = leak(time.query_times, 2, i64::MAX);
    refuse(
        with_time(TimeBias {
            query_times: huge,
            ..owned
        }),
        FaultKind::Timestamp,
        "query_times",
        "at index 2",
    );
}

//! Losses on extreme input: huge logits, non-finite numbers, invalid ids and options.

use super::naive::{Objective, Problem};
use super::tests::{assert_matches, problem, run};
use crate::Ctx;
use crate::fault::FaultKind;

#[test]
fn huge_logits_stay_finite() {
    for objective in [
        Objective::SampledSoftmax { logq: None },
        Objective::Bce,
        Objective::FullSoftmax { smoothing: 0.1 },
    ] {
        let mut p = problem([12, 16, 9, 30], objective, (false, false));
        p.u.iter_mut().for_each(|x| *x *= 1e6);
        let want = p.solve();
        let got = run(&Ctx::new(2), &p, false).expect("finite");
        assert_matches(&got[..1], &want, "huge");
        assert!(want.loss > 1e4);
    }
}

#[test]
fn numbers_that_are_not_finite_are_refused() {
    for objective in [
        Objective::SampledSoftmax { logq: None },
        Objective::Gbce { t: 1.0 },
        Objective::FullSoftmax { smoothing: 0.1 },
    ] {
        for bad in [f64::NAN, f64::INFINITY, -f64::INFINITY] {
            let mut p = problem([40, 16, 9, 30], objective.clone(), (true, true));
            p.positives[33] = 5;
            p.u[33 * 16 + 7] = bad;
            let fault = run(&Ctx::new(2), &p, false).expect_err("a fault");
            assert_eq!(fault.kind, FaultKind::NotFinite);
            assert!(fault.got.ends_with("token 33"), "{fault}");
            let mut p = problem([40, 16, 9, 30], objective.clone(), (false, false));
            (p.positives[3], p.table[5 * 16]) = (5, bad);
            assert_eq!(
                run(&Ctx::new(2), &p, false).err().map(|f| f.kind),
                Some(FaultKind::NotFinite)
            );
        }
    }
}

#[test]
fn bad_ids_and_options_are_refused() {
    let good = problem([4, 8, 3, 10], Objective::Gbce { t: 0.5 }, (true, true));
    let refused = |p: Problem| {
        run(&Ctx::new(1), &p, false)
            .err()
            .map(|fault| (fault.kind, fault.input))
    };
    let mut p = good.clone();
    p.positives[2] = 10;
    assert_eq!(refused(p), Some((FaultKind::Range, "positives")));
    let mut p = good.clone();
    p.negatives[11] = -2;
    assert_eq!(refused(p), Some((FaultKind::Range, "negatives")));
    let p = Problem {
        temperature: 0.0,
        ..good.clone()
    };
    assert_eq!(refused(p), Some((FaultKind::Argument, "temperature")));
    let p = Problem {
        objective: Objective::Gbce { t: 1.5 },
        ..good.clone()
    };
    assert_eq!(refused(p), Some((FaultKind::Argument, "t")));
    let p = Problem {
        objective: Objective::SampledSoftmax {
            logq: Some(vec![0.0; 9]),
        },
        ..good.clone()
    };
    assert_eq!(refused(p), Some((FaultKind::Shape, "logq")));
    let p = Problem {
        positives: vec![1; 3],
        ..good
    };
    assert_eq!(refused(p), Some((FaultKind::Shape, "positives")));
}

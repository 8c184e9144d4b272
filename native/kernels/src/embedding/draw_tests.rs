//! Draws of negatives against the distributions that they are to follow.

use super::{Alias, Sampler, alias_table, draw_negatives};
use crate::Ctx;
use crate::fault::FaultKind;
use crate::mat::MatMut;
use crate::rng::Key;

/// Draws of a sampler on 1 and 3 threads, which must agree.
fn draws(sampler: Sampler, tokens: usize, per: usize) -> Vec<i32> {
    let run = |threads| {
        let mut ids = vec![-9; tokens * per];
        draw_negatives(
            &Ctx::new(threads),
            Key::new(5, 6, 7),
            sampler,
            MatMut::new(&mut ids, tokens, per),
        )
        .expect("draws");
        ids
    };
    let ids = run(1);
    assert!(ids == run(3));
    ids
}

fn shares(ids: &[i32], items: usize) -> Vec<f64> {
    let mut counts = vec![0.0; items];
    ids.iter().for_each(|&id| counts[id as usize] += 1.0 / ids.len() as f64);
    counts
}

#[test]
fn draws_follow_the_stated_distribution() {
    let ids = draws(Sampler::Uniform { first: 1, count: 10 }, 1001, 129);
    let uniform = shares(&ids, 11);
    assert_eq!(uniform[0], 0.0);
    assert!(
        uniform[1..].iter().all(|share| (share - 0.1).abs() < 0.004),
        "{uniform:?}"
    );

    let weights = [0.0, 1.0, 2.0, 3.0, 0.0, 10.0, 4.0];
    let (mut threshold, mut alias, mut logq) = ([0.0; 7], [0; 7], [0.0; 7]);
    let to = Alias {
        threshold: &mut threshold,
        alias: &mut alias,
        logq: &mut logq,
    };
    alias_table(&Ctx::new(1), &weights, to).expect("a table");
    let drawn = shares(
        &draws(
            Sampler::Popularity {
                threshold: &threshold,
                alias: &alias,
            },
            1000,
            128,
        ),
        7,
    );
    for (i, weight) in weights.iter().enumerate() {
        let want = f64::from(*weight) / 20.0;
        assert!((drawn[i] - want).abs() < 0.005, "{i}: {drawn:?}");
        assert!((f64::from(logq[i]).exp() - want).abs() < 1e-6);
    }

    let in_batch = shares(
        &draws(
            Sampler::InBatch {
                positives: &[-1, 3, 3, -1, 0, 3],
            },
            100,
            100,
        ),
        4,
    );
    assert!(
        (in_batch[3] - 0.75).abs() < 0.02 && (in_batch[0] - 0.25).abs() < 0.02,
        "{in_batch:?}"
    );
    assert!(
        draws(Sampler::InBatch { positives: &[-1, -1] }, 2, 3)
            .iter()
            .all(|id| *id == -1)
    );
}

#[test]
fn impossible_samplers_are_refused() {
    let mut ids = [0; 4];
    let ids = MatMut::new(&mut ids, 2, 2);
    for sampler in [
        Sampler::Uniform { first: 0, count: 0 },
        Sampler::Uniform { first: -1, count: 3 },
    ] {
        let fault = draw_negatives(&Ctx::new(1), Key(0, 0), sampler, ids).expect_err("a fault");
        assert_eq!(fault.kind, FaultKind::Argument);
    }
    for weights in [[0.0, 0.0], [1.0, -1.0], [1.0, f32::NAN]] {
        let (mut threshold, mut alias, mut logq) = ([0.0; 2], [0; 2], [0.0; 2]);
        let to = Alias {
            threshold: &mut threshold,
            alias: &mut alias,
            logq: &mut logq,
        };
        assert_eq!(
            alias_table(&Ctx::new(1), &weights, to).map_err(|f| f.kind),
            Err(FaultKind::Argument)
        );
    }
}

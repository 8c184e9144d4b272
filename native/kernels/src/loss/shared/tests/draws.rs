//! Which tokens share draws, and how many of them count.

use super::*;

#[test]
fn groups_hold_every_trained_token_once_and_their_own_draws() {
    let case = case([23, 2, 3, 50, 4], NaiveObjective::Bce, (false, false));
    let p = &case.problem;
    let mut members: Vec<i32> = case.members.iter().copied().filter(|member| *member >= 0).collect();
    let trained: Vec<i32> = (0..23).filter(|t| p.positives[*t as usize] >= 0).collect();
    assert_ne!(members, trained, "shuffled");
    members.sort_unstable();
    assert_eq!(members, trained);
    for (place, &member) in case.members.iter().enumerate() {
        let draws = &case.negatives[place * 3..][..3];
        match member {
            -1 if place / 4 * 4 < trained.len() => {
                let donor = case.members[place - trained.len()] as usize;
                assert_eq!(
                    draws,
                    &p.negatives[donor * 3..][..3],
                    "the last group borrows from the first"
                );
            }
            -1 => assert_eq!(draws, [-1; 3]),
            token => assert_eq!(draws, &p.negatives[token as usize * 3..][..3]),
        }
    }
}

#[test]
fn who_shares_with_whom_depends_on_every_part_of_the_key() {
    let (positives, drawn) = ([1; 40], [0; 40]);
    let groups = |key: Key| {
        let (mut members, mut negatives) = ([-1; 40], [-1; 40]);
        let to = (MatMut::new(&mut members, 10, 4), MatMut::new(&mut negatives, 10, 4));
        share_negatives(&Ctx::new(1), key, &positives, Mat::new(&drawn, 40, 1), to).expect("groups");
        members
    };
    let first = groups(Key::new(5, 6, 7));
    assert_eq!(groups(Key::new(5, 6, 7)), first);
    for other in [Key::new(4, 6, 7), Key::new(5, 7, 7), Key::new(5, 6, 8)] {
        assert_ne!(groups(other), first);
    }
}

#[test]
fn masked_draws_and_repetitions_are_counted() {
    let positives = [5, -1, 7];
    let mut draws = [1, 5, 1, 9, 1, 1, 1, 1, 7, -1, 3, 2];
    let count = |negatives: &[i32], mask| {
        let mut to = [0; 3];
        let args = Counted {
            positives: &positives,
            negatives: Mat::new(negatives, 3, 4),
            members: None,
            mask,
        };
        count_negatives(&Ctx::new(2), args, &mut to).expect("counts");
        to
    };
    assert_eq!(count(&draws, Mask::Positive), [8, 3, 1]);
    let (items, offsets) = ([9, 9, 2], [0, 2, 3]);
    let events = Mask::History(Events {
        items: &items,
        targets: &positives,
        offsets: &offsets,
    });
    assert_eq!(count(&draws, events), [8, 5, 1]);
    mask_negatives(&Ctx::new(2), &positives, events, MatMut::new(&mut draws, 3, 4)).expect("masks");
    assert_eq!(draws, [1, -1, 1, -1, 1, 1, 1, 1, -1, -1, 3, -1]);
    assert_eq!(count(&draws, Mask::Positive), [8, 5, 1], "masked for good");
}

#[test]
fn repetitions_are_those_of_a_sorted_list() {
    let (tokens, draws) = (70, 300);
    let positives: Vec<i32> = (0..tokens as i32).collect();
    let negatives: Vec<i32> = (0..tokens * draws)
        .map(|i| ((i * i * 31 + i * 7) % 457) as i32)
        .collect();
    let mut expected = [(tokens * draws) as i64, 0, 0];
    for (ids, positive) in negatives.chunks(draws).zip(&positives) {
        let mut left: Vec<i32> = ids.iter().copied().filter(|id| id != positive).collect();
        expected[1] += (draws - left.len()) as i64;
        left.sort_unstable();
        expected[2] += left.windows(2).filter(|pair| pair[0] == pair[1]).count() as i64;
    }
    assert!(expected[1] > 0 && expected[2] > 0);
    let mut to = [0; 3];
    let args = Counted {
        positives: &positives,
        negatives: Mat::new(&negatives, tokens, draws),
        members: None,
        mask: Mask::Positive,
    };
    count_negatives(&Ctx::new(2), args, &mut to).expect("counts");
    assert_eq!(to, expected);
}

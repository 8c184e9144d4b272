//! Dropout whose decisions forward stores for backward.

use super::*;
use crate::MatMut;
use crate::fault::FaultKind;

/// Forward and backward of a gated layer; `change` modifies `mask` in between.
fn gated_with(cx: &Ctx, mask: &mut Option<Vec<i64>>, change: impl Fn(&mut [i64])) -> Vec<Padded> {
    let [t, m, d] = [100, 704, 20];
    let given = |seed, rows, cols| Padded::from(&numbers(seed, rows * cols), rows, cols);
    let (u, o, w, x, dy) = (
        given(1, t, m),
        given(2, t, m),
        given(3, m, d),
        given(4, t, d),
        given(5, t, d),
    );
    let (mut y, mut stats) = (Padded::unset(t, d), Padded::unset(t, 2));
    let (mut du, mut d_o, mut dw) = (Padded::unset(t, m), Padded::unset(t, m), Padded::unset(m, d));
    let mask = mask.as_mut().map(|mask| MatMut::new(mask, 1, t * m / 64));
    let forward = gated_norm_linear_residual::Forward {
        u: u.mat().into(),
        o: o.mat(),
        norm: Norm::Rms,
        eps: EPS as f32,
        dropout: dropout(3),
        mask,
        w: w.mat().into(),
        bias: None,
        x: x.mat(),
        y: y.mat_mut(),
        stats: stats.mat_mut(),
    };
    gated_norm_linear_residual::forward(cx, forward).unwrap();
    // SAFETY: the mask's own row, which no task has any more.
    mask.iter().for_each(|mask| change(unsafe { mask.row(0) }));
    let backward = gated_norm_linear_residual::Backward {
        u: forward.u,
        o: forward.o,
        norm: forward.norm,
        dropout: forward.dropout,
        mask: mask.map(MatMut::as_ref),
        w: forward.w,
        stats: stats.mat(),
        dy: dy.mat(),
        du: du.overwrite().into(),
        d_o: d_o.overwrite(),
        dw: dw.overwrite(),
        db: None,
    };
    gated_norm_linear_residual::backward(cx, backward).unwrap();
    vec![y, du, d_o, dw]
}

#[test]
fn a_dropout_that_is_remembered_gives_the_bits_of_one_drawn_again() {
    let mask = || Some(vec![0; 100 * 704 / 64]);
    let on = |mask: fn() -> Option<Vec<i64>>, change: fn(&mut [i64])| {
        on_every_context(&contexts(), |cx| gated_with(cx, &mut mask(), change))
    };
    let drawn = on(|| None, |_| ());
    assert_eq!(drawn, on(mask, |_| ()));
    let flipped = on(mask, |mask| mask[7] ^= 1 << 40);
    for (drawn, flipped) in drawn.iter().zip(&flipped) {
        assert_eq!(drawn[0], flipped[0]);
        assert!(
            drawn[1] != flipped[1] && drawn[3] != flipped[3],
            "backward does not read the mask"
        );
    }
}

#[test]
fn a_mask_for_rows_that_share_words_is_refused() {
    let (rows, mut mask) = (Padded::from(&numbers(1, 4 * 32), 4, 32), vec![0; 2]);
    let (mut y, mut stats) = (Padded::unset(4, 32), Padded::unset(4, 2));
    let w = Padded::from(&numbers(2, 32 * 32), 32, 32);
    let forward = gated_norm_linear_residual::Forward {
        u: rows.mat().into(),
        o: rows.mat(),
        norm: Norm::Rms,
        eps: EPS as f32,
        dropout: dropout(3),
        mask: Some(MatMut::new(&mut mask, 1, 2)),
        w: w.mat().into(),
        bias: None,
        x: rows.mat(),
        y: y.mat_mut(),
        stats: stats.mat_mut(),
    };
    let fault = gated_norm_linear_residual::forward(&Ctx::new(1), forward).unwrap_err();
    assert_eq!((fault.kind, fault.input), (FaultKind::Argument, "mask"));
}

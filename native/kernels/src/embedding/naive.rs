//! The oracle of the embedding kernels: double precision, plain loops.
//!
//! T tokens, D width, V items.

use crate::norm::naive::l2_norm_row_grad;
use crate::rng::Dropout;

/// Number of element (t, 0) in the dropout stream of a width: rows start at multiples of 8.
fn first_draw(t: usize, d: usize) -> u64 {
    (t * d.div_ceil(8) * 8) as u64
}

pub struct Gather {
    pub width: usize,
    pub table: Vec<f64>,
    pub ids: Vec<i32>,
    pub scale: f64,
    /// Position table and offsets.
    pub positions: Option<(Vec<f64>, Vec<i32>)>,
    pub dropout: Dropout,
}

impl Gather {
    /// Sequence position of every token.
    fn place(&self, t: usize) -> usize {
        let offsets = &self.positions.as_ref().expect("positions").1;
        let start = offsets
            .iter()
            .rfind(|&&offset| offset as usize <= t)
            .expect("offsets from 0");
        t - *start as usize
    }

    /// `before` is what the output holds, zeros unless accumulating.
    pub fn forward(&self, before: &[f64]) -> Vec<f64> {
        let d = self.width;
        let mut out = before.to_vec();
        for (t, &id) in self.ids.iter().enumerate() {
            for k in 0..d {
                let x = &mut out[t * d + k];
                if id >= 0 {
                    *x += self.scale * self.table[id as usize * d + k];
                }
                if let Some((table, _)) = &self.positions {
                    *x += table[self.place(t) * d + k];
                }
                *x *= f64::from(self.dropout.factor(first_draw(t, d) + k as u64));
            }
        }
        out
    }

    /// Gradients of what was summed before dropout and of the position table (empty without one).
    pub fn backward(&self, dout: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let d = self.width;
        let mut dx = dout.to_vec();
        let mut dpos = vec![0.0; self.positions.as_ref().map_or(0, |(table, _)| table.len())];
        for t in 0..self.ids.len() {
            for k in 0..d {
                dx[t * d + k] *= f64::from(self.dropout.factor(first_draw(t, d) + k as u64));
                if self.positions.is_some() {
                    dpos[self.place(t) * d + k] += dx[t * d + k];
                }
            }
        }
        (dx, dpos)
    }
}

/// As the kernel's `Contribution`, in double.
pub struct Summand {
    pub per: usize,
    pub ids: Vec<i32>,
    pub source: Vec<f64>,
    pub coef: Option<Vec<f64>>,
    pub scale: f64,
    pub normalized: Option<f64>,
}

/// The dense gradient of a table, and which rows were touched.
pub fn gradient(table: &[f64], d: usize, summands: &[Summand]) -> (Vec<f64>, Vec<bool>) {
    let items = table.len() / d;
    let (mut total, mut touched) = (vec![0.0; items * d], vec![false; items]);
    for summand in summands {
        let mut sum = vec![0.0; items * d];
        for (at, &id) in summand.ids.iter().enumerate() {
            let coef = summand.coef.as_ref().map_or(1.0, |coef| coef[at]) * summand.scale;
            if id < 0 || coef == 0.0 {
                continue;
            }
            touched[id as usize] = true;
            for k in 0..d {
                sum[id as usize * d + k] += coef * summand.source[at / summand.per * d + k];
            }
        }
        for item in 0..items {
            let (row, g) = (&table[item * d..][..d], &sum[item * d..][..d]);
            let g = summand
                .normalized
                .map_or(g.to_vec(), |eps| l2_norm_row_grad(eps, row, g));
            total[item * d..][..d].iter_mut().zip(g).for_each(|(to, g)| *to += g);
        }
    }
    (total, touched)
}

/// A gradient as touched rows by ascending id.
pub type List = std::collections::BTreeMap<i32, Vec<f64>>;

/// The touched rows of a table's gradient.
pub fn reduce(table: &[f64], d: usize, summands: &[Summand]) -> List {
    let (total, touched) = gradient(table, d, summands);
    let rows = total.chunks_exact(d).zip(touched).enumerate();
    rows.filter(|(_, (_, touched))| *touched)
        .map(|(id, (row, _))| (id as i32, row.to_vec()))
        .collect()
}

/// Row by row; a row that only one list has is taken as it is.
pub fn sparse_add(left: &List, right: &List) -> List {
    let mut sum = left.clone();
    for (id, row) in right {
        match sum.get_mut(id) {
            Some(to) => to.iter_mut().zip(row).for_each(|(to, x)| *to += x),
            None => drop(sum.insert(*id, row.clone())),
        }
    }
    sum
}

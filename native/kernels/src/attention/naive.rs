//! The oracle of the attention kernels: double precision, plain loops over pairs, contiguous matrices. Never fast, never
//! called outside tests. Letters as in the parent module.

use super::bucket::bucket_by_definition;
use super::power::softplus;

/// [`super::NaiveInputs`] in double precision.
#[derive(Clone)]
pub struct NaiveInputs {
    pub q: Vec<f64>,
    pub k: Vec<f64>,
    pub v: Vec<f64>,
    pub heads: usize,
    pub offsets: Vec<i32>,
    pub n: usize,
    pub pos_w: Option<Vec<f64>>,
    pub time: Option<Time>,
}

/// [`super::TimeBias`] in double precision.
#[derive(Clone)]
pub struct Time {
    pub weights: Vec<f64>,
    pub times: Vec<i64>,
    pub query_times: Vec<i64>,
    /// Of the function of the gap; buckets when absent.
    pub unit: Option<f64>,
}

impl Time {
    /// The term of a pair and its derivatives by the weights: (weight, slope).
    fn term(&self, i: usize, j: usize) -> (f64, Vec<(usize, f64)>) {
        let gap = self.query_times[i] - self.times[j];
        let Some(unit) = self.unit else {
            let entry = bucket_by_definition(gap) / (128 / (self.weights.len() - 1));
            return (self.weights[entry], vec![(entry, 1.0)]);
        };
        let (alpha, beta, gamma) = (self.weights[0], softplus(self.weights[1]), sigmoid(self.weights[2]));
        let t = gap.unsigned_abs() as f64 / unit;
        let (power, log) = if t > 0.0 { (t.powf(beta), t.ln()) } else { (0.0, 0.0) };
        let value = gamma.powf(power);
        let by_beta = alpha * value * gamma.ln() * power * log * sigmoid(self.weights[1]);
        let by_gamma = alpha * power * gamma.powf(power - 1.0) * gamma * (1.0 - gamma);
        (alpha * value, vec![(0, value), (1, by_beta), (2, by_gamma)])
    }
}

/// Gradients of every input that has one.
#[derive(Clone, Debug, PartialEq)]
pub struct Grads {
    pub dq: Vec<f64>,
    pub dk: Vec<f64>,
    pub dv: Vec<f64>,
    pub dpos_w: Vec<f64>,
    pub dts_w: Vec<f64>,
    /// Sum of the absolute terms of each entry of `dts_w`.
    pub dts_w_terms: Vec<f64>,
}

/// One (query, key) pair of one sequence: token rows and positions.
struct Pair {
    i: usize,
    j: usize,
    /// Index into `pos_w`.
    pos: usize,
}

impl NaiveInputs {
    fn tokens(&self) -> usize {
        *self.offsets.last().expect("offsets") as usize
    }
    /// Query/key width of a head.
    fn a(&self) -> usize {
        self.q.len() / (self.tokens() * self.heads).max(1)
    }
    /// Value width of a head.
    fn v_width(&self) -> usize {
        self.v.len() / (self.tokens() * self.heads).max(1)
    }

    fn pairs(&self) -> Vec<Pair> {
        let mut pairs = Vec::new();
        for ends in self.offsets.windows(2) {
            for i in ends[0] as usize..ends[1] as usize {
                for j in ends[0] as usize..=i {
                    pairs.push(Pair {
                        i,
                        j,
                        pos: j + self.n - 1 - i,
                    });
                }
            }
        }
        pairs
    }

    fn pos_term(&self, pair: &Pair) -> f64 {
        self.pos_w.as_ref().map_or(0.0, |w| w[pair.pos])
    }
    fn ts_term(&self, pair: &Pair) -> f64 {
        self.time.as_ref().map_or(0.0, |time| time.term(pair.i, pair.j).0)
    }
    fn score(&self, pair: &Pair, head: usize) -> f64 {
        let a = self.a();
        let row = |token: usize| token * self.heads * a + head * a;
        dot(&self.q[row(pair.i)..][..a], &self.k[row(pair.j)..][..a])
    }
    fn zero_grads(&self) -> Grads {
        Grads {
            dq: vec![0.0; self.q.len()],
            dk: vec![0.0; self.k.len()],
            dv: vec![0.0; self.v.len()],
            dpos_w: vec![0.0; self.pos_w.as_ref().map_or(0, Vec::len)],
            dts_w: vec![0.0; self.time.as_ref().map_or(0, |time| time.weights.len())],
            dts_w_terms: vec![0.0; self.time.as_ref().map_or(0, |time| time.weights.len())],
        }
    }
    /// Contribution of the gradient of a pair's time term to that of its weights.
    fn ts_backward(&self, grads: &mut Grads, pair: &Pair, ds: f64) {
        let slopes = self.time.as_ref().map(|time| time.term(pair.i, pair.j).1);
        for (weight, slope) in slopes.into_iter().flatten() {
            grads.dts_w[weight] += ds * slope;
            grads.dts_w_terms[weight] += (ds * slope).abs();
        }
    }
    /// dq_i += ds k_j, dk_j += ds q_i.
    fn score_backward(&self, grads: &mut Grads, pair: &Pair, head: usize, ds: f64) {
        let a = self.a();
        let (i, j) = (pair.i * self.heads * a + head * a, pair.j * self.heads * a + head * a);
        for x in 0..a {
            grads.dq[i + x] += ds * self.k[j + x];
            grads.dk[j + x] += ds * self.q[i + x];
        }
    }
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

fn axpy(to: &mut [f64], scale: f64, x: &[f64]) {
    to.iter_mut().zip(x).for_each(|(to, x)| *to += scale * x);
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn silu_grad(x: f64) -> f64 {
    let s = sigmoid(x);
    s * (1.0 + x * (1.0 - s))
}

fn add_at(to: &mut [f64], index: usize, x: f64) {
    if let Some(entry) = to.get_mut(index) {
        *entry += x;
    }
}

/// o[T, h*v]
pub fn hstu_forward(x: &NaiveInputs) -> Vec<f64> {
    let (h, v) = (x.heads, x.v_width());
    let mut o = vec![0.0; x.v.len()];
    for pair in x.pairs() {
        for head in 0..h {
            let s = x.score(&pair, head) + x.pos_term(&pair) + x.ts_term(&pair);
            let weight = s * sigmoid(s) / x.n as f64;
            axpy(
                &mut o[(pair.i * h + head) * v..][..v],
                weight,
                &x.v[(pair.j * h + head) * v..][..v],
            );
        }
    }
    o
}

pub fn hstu_backward(x: &NaiveInputs, d_o: &[f64]) -> Grads {
    let (h, v) = (x.heads, x.v_width());
    let mut grads = x.zero_grads();
    for pair in x.pairs() {
        for head in 0..h {
            let s = x.score(&pair, head) + x.pos_term(&pair) + x.ts_term(&pair);
            let g = &d_o[(pair.i * h + head) * v..][..v];
            let value = (pair.j * h + head) * v;
            axpy(&mut grads.dv[value..][..v], s * sigmoid(s) / x.n as f64, g);
            let ds = dot(g, &x.v[value..][..v]) * silu_grad(s) / x.n as f64;
            x.score_backward(&mut grads, &pair, head, ds);
            add_at(&mut grads.dpos_w, pair.pos, ds);
            x.ts_backward(&mut grads, &pair, ds);
        }
    }
    grads
}

/// o[T, h*3*v], per head [pos | ts | sem].
pub fn fuxi_forward(x: &NaiveInputs) -> Vec<f64> {
    let (h, v) = (x.heads, x.v_width());
    let mut o = vec![0.0; 3 * x.v.len()];
    for pair in x.pairs() {
        for head in 0..h {
            let s = x.score(&pair, head);
            let weights = [x.pos_term(&pair), x.ts_term(&pair), s * sigmoid(s) / x.n as f64];
            for (channel, weight) in weights.into_iter().enumerate() {
                let at = ((pair.i * h + head) * 3 + channel) * v;
                axpy(&mut o[at..][..v], weight, &x.v[(pair.j * h + head) * v..][..v]);
            }
        }
    }
    o
}

pub fn fuxi_backward(x: &NaiveInputs, d_o: &[f64]) -> Grads {
    let (h, v) = (x.heads, x.v_width());
    let mut grads = x.zero_grads();
    for pair in x.pairs() {
        for head in 0..h {
            let s = x.score(&pair, head);
            let value = (pair.j * h + head) * v;
            let g = |channel: usize| &d_o[((pair.i * h + head) * 3 + channel) * v..][..v];
            let weights = [x.pos_term(&pair), x.ts_term(&pair), s * sigmoid(s) / x.n as f64];
            for (channel, weight) in weights.into_iter().enumerate() {
                axpy(&mut grads.dv[value..][..v], weight, g(channel));
            }
            let value = &x.v[value..][..v];
            add_at(&mut grads.dpos_w, pair.pos, dot(g(0), value));
            x.ts_backward(&mut grads, &pair, dot(g(1), value));
            x.score_backward(&mut grads, &pair, head, dot(g(2), value) * silu_grad(s) / x.n as f64);
        }
    }
    grads
}

/// Softmax weights of one head over the pairs of one query, in key order: (pair, weight); and ln of their normaliser.
fn softmax_rows(x: &NaiveInputs, head: usize, scale: f64) -> Vec<(Vec<(Pair, f64)>, f64)> {
    let mut rows: Vec<(Vec<(Pair, f64)>, f64)> = (0..x.tokens()).map(|_| (Vec::new(), 0.0)).collect();
    for pair in x.pairs() {
        let s = scale * x.score(&pair, head);
        rows[pair.i].0.push((pair, s));
    }
    for (row, lse) in &mut rows {
        let most = row.iter().fold(f64::NEG_INFINITY, |most, (_, s)| most.max(*s));
        *lse = most + row.iter().map(|(_, s)| (s - most).exp()).sum::<f64>().ln();
        row.iter_mut().for_each(|(_, s)| *s = (*s - *lse).exp());
    }
    rows
}

/// (o[T, h*v], lse[T, h]); `keep(i, j, head)` is the dropout factor of one weight.
pub fn softmax_forward(x: &NaiveInputs, scale: f64, keep: impl Fn(usize, usize, usize) -> f64) -> (Vec<f64>, Vec<f64>) {
    let (h, v) = (x.heads, x.v_width());
    let (mut o, mut lse) = (vec![0.0; x.v.len()], vec![0.0; x.tokens() * h]);
    for head in 0..h {
        for (i, (row, row_lse)) in softmax_rows(x, head, scale).into_iter().enumerate() {
            lse[i * h + head] = row_lse;
            for (pair, weight) in row {
                let weight = weight * keep(i, pair.j, head);
                axpy(
                    &mut o[(i * h + head) * v..][..v],
                    weight,
                    &x.v[(pair.j * h + head) * v..][..v],
                );
            }
        }
    }
    (o, lse)
}

pub fn softmax_backward(x: &NaiveInputs, scale: f64, keep: impl Fn(usize, usize, usize) -> f64, d_o: &[f64]) -> Grads {
    let (h, v) = (x.heads, x.v_width());
    let mut grads = x.zero_grads();
    for head in 0..h {
        for (i, (row, _)) in softmax_rows(x, head, scale).into_iter().enumerate() {
            let g = &d_o[(i * h + head) * v..][..v];
            let dweight = |j: usize| dot(g, &x.v[(j * h + head) * v..][..v]) * keep(i, j, head);
            let mean: f64 = row.iter().map(|(pair, weight)| weight * dweight(pair.j)).sum();
            for (pair, weight) in row {
                axpy(
                    &mut grads.dv[(pair.j * h + head) * v..][..v],
                    weight * keep(i, pair.j, head),
                    g,
                );
                x.score_backward(&mut grads, &pair, head, scale * weight * (dweight(pair.j) - mean));
            }
        }
    }
    grads
}

//! The oracle of retrieval: all scores in double, sorted.

/// Q queries and V items of width D, with each query's excluded ids.
pub struct Problem {
    /// `[Q, V, D]`
    pub shape: [usize; 3],
    pub queries: Vec<f64>,
    pub table: Vec<f64>,
    pub excluded: Vec<Vec<i32>>,
}

impl Problem {
    pub fn score(&self, q: usize, item: usize) -> f64 {
        let d = self.shape[2];
        (0..d).map(|k| self.queries[q * d + k] * self.table[item * d + k]).sum()
    }

    /// Every item that is not excluded, best first.
    pub fn ranking(&self, q: usize) -> Vec<(i32, f64)> {
        let mut all: Vec<(i32, f64)> = (0..self.shape[1])
            .filter(|&item| !self.excluded[q].contains(&(item as i32)))
            .map(|item| (item as i32, self.score(q, item)))
            .collect();
        all.sort_by(|a, b| b.1.partial_cmp(&a.1).expect("finite scores").then(a.0.cmp(&b.0)));
        all
    }

    /// 1-based; V + 1 for an excluded target.
    pub fn rank(&self, q: usize, target: i32) -> i32 {
        let place = self.ranking(q).iter().position(|(id, _)| *id == target);
        place.map_or(self.shape[1], |place| place) as i32 + 1
    }
}

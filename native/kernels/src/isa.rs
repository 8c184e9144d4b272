//! The instruction set of the kernels, selected once at run time.

/// Instruction sets with specific kernels. `Portable` is plain Rust and runs everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isa {
    Portable,
    /// AVX2 + FMA + F16C: 8 lanes, 6x16 register tile.
    Avx2,
    /// AVX-512 as well (F, BW, DQ, VL): the same lanes and operations, but a row of the register tile is one register, and two tiles
    /// are computed at once. Results are those of [`Isa::Avx2`] to the bit.
    Avx512,
}

/// Every instruction set that this CPU has, the best one last.
pub fn available() -> impl Iterator<Item = Isa> {
    [Isa::Portable, Isa::Avx2, Isa::Avx512]
        .into_iter()
        .filter(|isa| isa.is_available())
}

impl Isa {
    /// The best set this CPU has.
    pub fn detect() -> Isa {
        available().last().unwrap_or(Isa::Portable)
    }

    /// Whether this CPU has it.
    pub fn is_available(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        {
            let narrow = || {
                is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c")
            };
            let wide = || {
                is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
            };
            match self {
                Isa::Portable => true,
                Isa::Avx2 => narrow(),
                Isa::Avx512 => narrow() && wide(),
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            self == Isa::Portable
        }
    }

    /// Register tiles that are computed side by side: with AVX-512 two, because the six sums of one would wait for each other.
    pub const fn tiles(self) -> usize {
        match self {
            Isa::Portable | Isa::Avx2 => 1,
            Isa::Avx512 => 2,
        }
    }

    /// The set of that name, if this CPU has it; `best` is the best one.
    pub fn named(name: &str) -> Option<Isa> {
        match name {
            "best" => Some(Isa::detect()),
            _ => available().find(|isa| isa.name() == name),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Isa::Portable => "portable",
            Isa::Avx2 => "avx2",
            Isa::Avx512 => "avx512",
        }
    }
}

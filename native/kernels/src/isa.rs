//! The instruction set of the kernels, selected once at run time.

/// Instruction sets with specific kernels. `Portable` is plain Rust and runs everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isa {
    Portable,
    /// AVX2 + FMA + F16C: 8 lanes, 6x16 register tile.
    Avx2,
}

impl Isa {
    /// The best set this CPU has.
    pub fn detect() -> Isa {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c") {
            return Isa::Avx2;
        }
        Isa::Portable
    }

    pub fn name(self) -> &'static str {
        match self {
            Isa::Portable => "portable",
            Isa::Avx2 => "avx2+fma+f16c",
        }
    }
}

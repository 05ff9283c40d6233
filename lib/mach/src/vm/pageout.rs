//! Page-out.
use super::Vm;
use crate::machine::Machine;
use crate::{KernError, KernResult};

pub(super) struct Laundry;
impl Laundry {
    pub(super) fn new() -> Self {
        Self
    }
}

impl<M: Machine> Vm<M> {
    pub(super) async fn wait_for_memory(&self) -> KernResult {
        Err(KernError::ResourceShortage)
    }
}

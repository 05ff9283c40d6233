//! The first tasks of a system: programs of boot modules.

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use mach::machine::{Machine, PAGE_SIZE, ThreadState};
use mach::vm::{MapRequest, Placement, VmMap};
use mach::{KernError, KernResult};

use crate::image::{Image, ImageError};
use crate::native::KernelPort;
use crate::script::{Argument, Line};
use crate::system::{ProgramTask, Services, System};

/// The size of the first thread's stack in bytes.
const STACK: u64 = 128 << 10;
/// The most bytes that a program's arguments may take.
const MOST_ARGUMENTS: usize = 64 << 10;

/// Why a boot module cannot be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartError {
    /// The program cannot be loaded.
    Image(ImageError),
    /// The arguments are too long.
    Arguments,
    /// The task or its thread cannot be made.
    Kernel(KernError),
}

impl core::fmt::Display for StartError {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Image(error) => error.fmt(formatter),
            Self::Arguments => formatter.write_str("its arguments are too long"),
            Self::Kernel(error) => error.fmt(formatter),
        }
    }
}

impl core::error::Error for StartError {}

impl From<KernError> for StartError {
    fn from(error: KernError) -> Self {
        Self::Kernel(error)
    }
}

impl<M: Machine, S: Services<M>> System<M, S> {
    /// Makes a task for a boot module, whose program is `file`. The task may have memory at
    /// addresses from `lowest` to before `highest`.
    ///
    /// # Errors
    /// The reason why the module cannot be started. Nothing of it is left.
    pub async fn start(
        self: &Arc<Self>,
        line: &Line,
        file: &[u8],
        (lowest, highest): (u64, u64),
    ) -> Result<(), StartError> {
        let image = Image::parse(file).map_err(StartError::Image)?;
        let part = self.task_part()?;
        let task = self.host.create_task_of(lowest, highest, |_| part).await?;
        let started = self.start_in(&task, line, &image).await;
        if started.is_err() {
            task.terminate().await;
            task.space.terminate();
        }
        started
    }

    async fn start_in(
        self: &Arc<Self>,
        task: &Arc<ProgramTask<M>>,
        line: &Line,
        image: &Image<'_>,
    ) -> Result<(), StartError> {
        image.load(task.map()).await.map_err(StartError::Image)?;
        let mut words = Vec::from([line.module.clone()]);
        for argument in &line.arguments {
            words.push(self.word(task, argument)?);
        }
        let stack = stack(task.map(), &words).await?;
        let part = self.thread_part()?;
        let thread = task.create_thread_of(1, |_| part).await?;
        thread.set_state(&ThreadState::at_start(image.entry, stack)).await?;
        self.begin(thread.clone())?;
        if !line.runs {
            task.suspend()?;
        }
        Ok(thread.resume()?)
    }

    /// An argument as the program gets it. A right that the argument stands for is given to the
    /// task.
    fn word(&self, task: &ProgramTask<M>, argument: &Argument) -> KernResult<String> {
        let name = |port: &KernelPort<M>| Ok(task.space.copyout_right(port.send())?.0.to_string());
        match argument {
            Argument::Text(text) => Ok(text.clone()),
            Argument::HostPort => name(&self.host_control),
            Argument::DevicePort => name(&self.device_master),
        }
    }
}

/// Makes the stack at the end of the address space, and puts the arguments on it. Returns the stack
/// pointer, at which the program finds the number of arguments, their addresses, 0, the addresses
/// of the environment's variables, of which there are none, and 0.
async fn stack<M: Machine>(map: &VmMap<M>, words: &[String]) -> Result<u64, StartError> {
    let (_, end) = map.bounds();
    let request = MapRequest::anonymous(STACK).at(Placement::Fixed(end - STACK));
    map.map(&request).await?;
    let text: usize = words.iter().map(|word| word.len() + 1).sum();
    let vector = 8 * (words.len() + 3);
    if text + vector > MOST_ARGUMENTS {
        return Err(StartError::Arguments);
    }
    let first_word = (end - text as u64) & !15;
    let pointer = (first_word - vector as u64) & !15;
    let mut bytes = Vec::from((words.len() as u64).to_le_bytes());
    let mut at = first_word;
    for word in words {
        bytes.extend_from_slice(&at.to_le_bytes());
        at += word.len() as u64 + 1;
    }
    bytes.resize((first_word - pointer) as usize, 0);
    for word in words {
        bytes.extend_from_slice(word.as_bytes());
        bytes.push(0);
    }
    debug_assert!(bytes.len() as u64 <= STACK - PAGE_SIZE);
    map.copyout(pointer, &bytes).await.map_err(|fault| fault.error)?;
    Ok(pointer)
}

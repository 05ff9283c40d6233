//! Loading a program into a fresh address space (the second half of execve(2)).

use super::{Details, Memory, NewMapping, PAGE, Place, Region, RegionKind, map_error, protection};
use crate::account::Account;
use crate::exec::image::{Image, Mapping};
use crate::exec::{Layout, Placement, Rights, layout, stack};
use crate::file::OpenFile;
use crate::front_end::FrontEndNumber;
use crate::personality::{Task, Unix};
use crate::process::{Limits, Resource};
use crate::{Error, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;
use mach::Machine;
use mach::vm::MapRequest;

/// Keeps a file from being written because it is being executed, until this is dropped.
pub struct Execution(Arc<OpenFile>);

impl Execution {
    /// Begins the execution of `file`. `ETXTBSY` while it is open for writing.
    pub fn begin(file: &Arc<OpenFile>) -> Result<Arc<Execution>> {
        if let Some(hooks) = file.hooks() {
            hooks.begin_execution()?;
        }
        Ok(Arc::new(Execution(file.clone())))
    }
}

impl Drop for Execution {
    fn drop(&mut self) {
        if let Some(hooks) = self.0.hooks() {
            hooks.end_execution();
        }
    }
}

/// A program file with its headers.
pub struct ProgramFile {
    /// The program file, open for reading.
    pub file: Arc<OpenFile>,
    /// Keeps the file from being written.
    pub execution: Arc<Execution>,
    /// What the file's headers describe.
    pub image: Image,
}

/// The addresses at which a program was loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// The address at which the first thread starts: the interpreter's entry point, if there is an
    /// interpreter.
    pub start: u64,
    /// The program's own entry point.
    pub entry: u64,
    /// Address of the interpreter (the dynamic linker); 0 if there is none.
    pub interpreter_base: u64,
    /// Address of the program headers; 0 if they are not in memory.
    pub headers: u64,
    /// How many program headers there are.
    pub header_count: usize,
}

/// How many bytes of a stack are mapped before it grows on demand.
const FIRST_STACK: u64 = 32 * PAGE;

/// What is needed to make an address space for a program.
pub struct NewSpace<'a, M: Machine> {
    /// The Mach host, which makes tasks.
    pub host: &'a Arc<mach::Host<M, Unix>>,
    /// Addresses that the program may use.
    pub layout: &'a Layout,
    /// The resource limits of the program's process.
    pub limits: &'a Limits,
    /// The account of the user that runs the program.
    pub account: &'a Arc<Account>,
    /// Which front end serves the program.
    pub front_end: FrontEndNumber,
}

impl<M: Machine> Memory<M> {
    /// Loads `program` and its interpreter into a fresh address space, which then still needs
    /// [`Memory::set_stack`]. `ENOMEM`, and the errors of mapping a file.
    pub async fn load(
        space: &NewSpace<'_, M>,
        program: &ProgramFile,
        interpreter: Option<&ProgramFile>,
        random: impl FnMut() -> u64,
    ) -> Result<(Arc<Task<M>>, Loaded, Placement)> {
        let NewSpace { host, layout, limits, account, front_end } = *space;
        let stack_limit = limits.soft(Resource::Stack);
        let placement = layout.place(&program.image, stack_limit, random)?;
        let memory = Memory::create(host, layout, account, front_end).await?;
        memory.set_stack_limit(stack_limit);
        {
            let mut regions = memory.regions.lock().await;
            regions.mapping_top = placement.mapping_top;
            regions.break_start = placement.break_start;
            regions.break_end = placement.break_start;
        }
        memory.load_image(program, placement.bias, limits).await?;
        let mut start = program.image.entry.wrapping_add(placement.bias);
        let entry = start;
        let mut interpreter_base = 0;
        if let Some(interpreter) = interpreter {
            let bias = memory.interpreter_bias(&interpreter.image).await?;
            memory.load_image(interpreter, bias, limits).await?;
            interpreter_base = bias;
            start = interpreter.image.entry.wrapping_add(bias);
        }
        let span = layout::relocated(&program.image, placement.bias, layout.low..layout.high)?;
        let code = program.image.mappings(placement.bias).find(|mapping| mapping.rights.execute);
        *memory.details.lock() = Details {
            code: code.map_or(span, |mapping| mapping.address..mapping.address + mapping.file_length),
            executable: Some(program.file.clone()),
            execution: Some(program.execution.clone()),
            ..Details::default()
        };
        let headers = match program.image.headers_address {
            0 if !program.image.is_relocatable => 0,
            address => address.wrapping_add(placement.bias),
        };
        let header_count = program.image.header_count;
        Ok((memory, Loaded { start, entry, interpreter_base, headers, header_count }, placement))
    }

    async fn interpreter_bias(&self, image: &Image) -> Result<u64> {
        if !image.is_relocatable {
            return Ok(0);
        }
        let size = image.span_size().checked_add(image.alignment).ok_or(Error::ENOMEM)?;
        let top = self.regions.lock().await.mapping_top;
        let start = top.checked_sub(size).ok_or(Error::ENOMEM)? & !(image.alignment - 1);
        Ok(start.wrapping_sub(image.span.start & !(image.alignment - 1)))
    }

    async fn load_image(&self, program: &ProgramFile, bias: u64, limits: &Limits) -> Result<()> {
        layout::relocated(&program.image, bias, self.layout.low..self.layout.high)?;
        for mapping in program.image.mappings(bias) {
            self.load_mapping(&program.file, &mapping, limits).await?;
        }
        Ok(())
    }

    async fn load_mapping(&self, file: &Arc<OpenFile>, mapping: &Mapping, limits: &Limits) -> Result<()> {
        let request = |address, length, file| NewMapping {
            place: Place::Fixed(address),
            length,
            rights: mapping.rights,
            shared: false,
            file,
            grows_down: false,
            populate: false,
            locked: false,
        };
        if mapping.file_length > 0 {
            let part = request(mapping.address, mapping.file_length, Some((file, mapping.offset)));
            self.map_new(&part, limits).await?;
            let clear = mapping.clear();
            if !clear.is_empty() {
                self.clear(clear.start, clear.end - clear.start).await.map_err(|_| Error::EIO)?;
            }
        }
        if mapping.zero_length > 0 {
            let part = request(mapping.address + mapping.file_length, mapping.zero_length, None);
            self.map_new(&part, limits).await?;
        }
        Ok(())
    }

    /// Makes the stack below `top` with `contents` on it; returns the stack pointer. `E2BIG` if
    /// they do not fit the limit, `ENOMEM`.
    pub async fn set_stack(
        &self,
        top: u64,
        executable: bool,
        contents: &stack::Contents<'_>,
        auxiliary: impl FnOnce(&stack::Pointers) -> Vec<(u64, u64)>,
    ) -> Result<u64> {
        let mut vector = Vec::new();
        let image = stack::build(top, contents, |pointers| {
            vector = auxiliary(pointers);
            vector.clone()
        })?;
        let end = top.next_multiple_of(PAGE);
        let start = (image.pointer & !(PAGE - 1)).saturating_sub(FIRST_STACK).max(self.layout.low);
        let rights = Rights { read: true, write: true, execute: executable };
        let mut request = MapRequest::anonymous(end - start).at(mach::vm::Placement::Fixed(start));
        request.protection = protection(rights);
        {
            let mut regions = self.regions.lock().await;
            self.map.map(&request).await.map_err(map_error)?;
            let region = Region::zeros(start..end, rights);
            regions.replace(Region { kind: RegionKind::Stack, grows_down: true, ..region });
        }
        self.copy_out(image.pointer, &image.bytes).await.map_err(|_| Error::ENOMEM)?;
        let mut details = self.details.lock();
        details.arguments = image.arguments;
        details.environment = image.environment;
        details.stack_start = image.pointer;
        details.auxiliary = vector;
        Ok(image.pointer)
    }
}

//! Replacing a process's program (execve(2)).

use super::{Inner, Resources, context_error};
use crate::credentials::Credentials;
use crate::descriptor::DescriptorTable;
use crate::exec::{Arguments, Image, ImageFormat, Layout, arguments, image, script, stack};
use crate::file::OpenFile;
use crate::front_end::{FrontEndNumber, Programs};
use crate::memory::{Execution, Loaded, Memory, NewSpace, ProgramFile};
use crate::namespace::{IdKind, UserNamespace};
use crate::personality::Thread;
use crate::privilege::FilePrivileges;
use crate::process::{NewProgram, Resource};
use crate::vfs::{
    Access, At, Directories, FileType, Found, Metadata, Mode, MountFlags, OpenContext, OpenFlags,
    permitted_at,
};
use crate::{Bytes, Error, Identity, Result};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::future::Future;
use mach::Machine;
use mach::machine::{ExecutionContext, ThreadState};
use mach::thread::ExceptionState;

/// The arguments of execve(2).
pub struct ExecRequest {
    /// The directory at which relative paths begin.
    pub at: At,
    /// The path of the program.
    pub path: Vec<u8>,
    /// Whether a symbolic link at the end of the path is followed.
    pub follow: bool,
    /// Whether an empty path means `at` itself (execveat with AT_EMPTY_PATH).
    pub empty: bool,
    /// Arguments of the program.
    pub arguments: Arguments,
    /// Environment of the program.
    pub environment: Arguments,
}

/// What a front end needs to make the auxiliary vector of a program.
pub struct ProgramInformation<'a> {
    /// The addresses at which the new program was loaded.
    pub loaded: &'a Loaded,
    /// The credentials of the program.
    pub credentials: &'a Credentials,
    /// Whether exec gave the process more privileges.
    pub secure: bool,
    /// Where the parts of the new program's stack are.
    pub pointers: &'a stack::Pointers,
}

/// A program that exec has just loaded, in place of the old one.
pub struct Executed<M: Machine> {
    /// The thread that runs the new program; the old thread has ended.
    pub thread: Arc<Thread<M>>,
    /// The registers with which the new program starts.
    pub state: Box<ThreadState>,
}

/// A program file that was found and can be loaded.
struct NewImage<'a> {
    file: ProgramFile,
    /// Where the file is that the caller named: the script, if it is one.
    found: Found,
    front_end: FrontEndNumber,
    /// How programs of this front end are loaded.
    programs: &'a dyn Programs,
}

impl<M: Machine> Resources<M> {
    /// Replaces the program of this thread's process by one in a new task. Until the last step
    /// nothing has changed for the old program, which goes on if this fails or is dropped.
    /// `leaving` is what the old program's front end has to do in the old memory, once this thread
    /// is the only one.
    ///
    /// `ENOENT`, `EACCES`, `ENOEXEC`, `ELIBBAD`, `ETXTBSY`, `E2BIG`, `ENOMEM`, `ELOOP`, ...;
    /// `EAGAIN` if the process is ending or another thread has called exec before: this thread then
    /// has to exit.
    pub async fn exec(
        &self,
        mut request: ExecRequest,
        leaving: impl Future<Output = ()>,
    ) -> Result<Executed<M>> {
        let system = &self.system;
        let limits = self.limits();
        let limit = arguments::size_limit(limits.soft(Resource::Stack));
        let shown_path = request.path.clone();
        let NewImage { file: program, found, front_end, programs } = self.find_program(&mut request).await?;
        if request.arguments.stack_size() + request.environment.stack_size() + shown_path.len() > limit {
            return Err(Error::E2BIG);
        }
        let interpreter = self.find_interpreter(&program, programs.format()).await?;
        let is_readable =
            self.may_read(&program.file) && interpreter.as_ref().is_none_or(|i| self.may_read(&i.file));
        // From here until the new credentials are in force, no other process can begin to share the
        // directories.
        let directories = self.directories();
        let _sealed = directories.seal();
        let (credentials, secure) = self.credentials_for(&found, &directories).await?;
        let memory_owner = match is_readable {
            true => credentials.namespace.clone(),
            false => self.owner_of_unreadable(&credentials, &program, interpreter.as_ref()),
        };
        let credentials = Arc::new(credentials);

        let mut random = || {
            let mut bytes = [0; 8];
            system.environment().fill_random(&mut bytes);
            u64::from_le_bytes(bytes)
        };
        let account = system.processes().with(|table| table.user_account(self.tid()));
        let randomises =
            system.processes().with(|table| table.process(self.pid()).is_ok_and(|p| p.randomises));
        let layout = Layout { randomise: system.layout().randomise && randomises, ..system.layout().clone() };
        let place =
            NewSpace { host: system.mach(), layout: &layout, limits: &limits, account: &account, front_end };
        let (memory, loaded, placement) =
            Memory::load(&place, &program, interpreter.as_ref(), &mut random).await?;
        let mut secret = [0; 16];
        system.environment().fill_random(&mut secret);
        let contents = stack::Contents {
            arguments: &request.arguments,
            environment: &request.environment,
            path: &shown_path,
            platform: programs.platform(),
            random: secret,
        };
        let executable_stack = program.image.executable_stack;
        let pointer = memory
            .set_stack(placement.stack_top, executable_stack, &contents, |pointers| {
                programs.auxiliary(&ProgramInformation {
                    loaded: &loaded,
                    credentials: &credentials,
                    secure,
                    pointers,
                })
            })
            .await?;
        system.host().prepare(&memory)?;
        let descriptors = match self.descriptors_are_shared() {
            true => Arc::new(self.descriptors().copy()?),
            false => self.descriptors(),
        };
        let thread = system.create_thread(&memory, self.inner_for_exec(descriptors)).await?;
        thread.context.set_affinity(self.context.affinity()).map_err(context_error)?;
        system.processes().become_only_thread(self.tid()).await?;
        leaving.await;

        let name = shown_path.rsplit(|byte| *byte == b'/').next().unwrap_or(&shown_path);
        let old_tid = self.tid();
        let new = NewProgram { name, credentials, is_readable, memory_owner, control: thread.clone() };
        // The credentials are set first, so that nothing of the new program can be inspected with
        // the rights for the old one.
        let pid = system.processes().with(|table| table.finish_exec(old_tid, new))?;

        // Point of no return: from here on nothing fails and nothing blocks.
        let numbers = system.processes().with(|table| table.own_numbers(pid));
        {
            let mut inner = thread.inner.lock();
            (inner.tid, inner.numbers) = (pid, numbers);
        }
        if system.processes().with(|table| table.is_observed(pid)) {
            thread.observe_calls();
        }
        // The old thread must not keep files open that belong to the new one.
        let old = core::mem::replace(&mut self.inner.lock().descriptors, thread.descriptors());
        thread.context.succeed(&self.context);
        self.context.end();
        let replaced = system.life.threads.lock().replace(old_tid, pid, thread.clone());
        drop((old, replaced));
        // Now that the thread can be found, a change of its priority after this one reaches it. It
        // exists, so that this does not fail.
        let _ = thread.begin_schedule(pid);
        system.timers().delete_all(system.processes(), pid, false);
        thread.descriptors().close_for_exec();
        Ok(Executed { thread, state: Box::new(ThreadState::at_start(loaded.start, pointer)) })
    }

    /// The state that the thread of the new program takes over.
    fn inner_for_exec(&self, descriptors: Arc<DescriptorTable>) -> Inner {
        let inner = self.inner.lock();
        Inner {
            tid: inner.tid,
            pid: inner.pid,
            numbers: inner.numbers,
            descriptors,
            directories: inner.directories.clone(),
            trap: ExceptionState::default(),
            debug_registers: None,
        }
    }

    fn descriptors_are_shared(&self) -> bool {
        // This thread itself holds one of the references.
        Arc::strong_count(&self.inner.lock().descriptors) > 1
    }

    /// Finds the program to load: the file itself, or the interpreter of a script, which then gets
    /// other arguments.
    async fn find_program(&self, request: &mut ExecRequest) -> Result<NewImage<'_>> {
        let context = self.context();
        let caller = context.caller();
        let mut found =
            caller.find_or_self(&request.at, &request.path, request.follow, request.empty).await?;
        let mut path = request.path.clone();
        for _ in 0..=script::DEPTH_LIMIT {
            let file = self.open_program(&found).await?;
            let start = self.read_file(&file, 0, script::LINE_LIMIT).await?;
            let Some(line) = script::parse(&start)? else {
                let execution = Execution::begin(&file)?;
                let (front_end, programs) = self.system.host().programs(&start).ok_or(Error::ENOEXEC)?;
                let file = self.read_image(execution, file, programs.format(), &start).await?;
                return Ok(NewImage { file, found, front_end, programs });
            };
            request.arguments.remove_first();
            request.arguments.push_front(&path)?;
            if let Some(argument) = line.argument {
                request.arguments.push_front(argument)?;
            }
            request.arguments.push_front(line.interpreter)?;
            path = line.interpreter.to_vec();
            found = caller.find(&At::Current, &path, true).await?;
        }
        Err(Error::ELOOP)
    }

    /// Finds the interpreter that a program names. `ELIBBAD` if it is not of the program's format.
    async fn find_interpreter(
        &self,
        program: &ProgramFile,
        format: &dyn ImageFormat,
    ) -> Result<Option<ProgramFile>> {
        let Some(range) = program.image.interpreter.clone() else { return Ok(None) };
        let bytes = self.read_file(&program.file, range.start, (range.end - range.start) as usize).await?;
        let context = self.context();
        let found = context.caller().find(&At::Current, Image::interpreter_path(&bytes)?, true).await?;
        let file = self.open_program(&found).await?;
        let start = self.read_file(&file, 0, image::START_SIZE).await?;
        let execution = Execution::begin(&file)?;
        if !format.recognises(&start) {
            return Err(Error::ELIBBAD);
        }
        match self.read_image(execution, file, format, &start).await {
            Err(Error::ENOEXEC) => Err(Error::ELIBBAD),
            other => other.map(Some),
        }
    }

    /// Opens a file to be executed. `EACCES` if it is not a regular file that the thread may
    /// execute.
    async fn open_program(&self, found: &Found) -> Result<Arc<OpenFile>> {
        if found.location.vnode.file_type() != FileType::Regular {
            return Err(Error::EACCES);
        }
        let identity = self.credentials().identity();
        permitted_at(&found.location, &identity, Access::EXECUTE)?;
        // A file system may have to get ready for the reads.
        let context = self.context();
        let process = context.caller().process;
        found
            .location
            .vnode
            .open(&OpenContext { flags: OpenFlags::READ, process, identity: &identity })
            .await?;
        Ok(OpenFile::of_vnode(found.location.clone(), found.entry.clone(), OpenFlags::READ, None))
    }

    async fn read_file(&self, file: &OpenFile, offset: u64, length: usize) -> Result<Vec<u8>> {
        let context = self.context_as(Identity::superuser());
        let mut buffer = Bytes::empty(length);
        while crate::UserBuffer::remaining(&buffer) > 0 {
            let done = crate::UserBuffer::transferred(&buffer) as u64;
            if file.read_at(&context.caller(), offset + done, &mut buffer).await? == 0 {
                break;
            }
        }
        Ok(buffer.done().to_vec())
    }

    /// The image of a program file that begins with the bytes `start`.
    async fn read_image(
        &self,
        execution: Arc<Execution>,
        file: Arc<OpenFile>,
        format: &dyn ImageFormat,
        start: &[u8],
    ) -> Result<ProgramFile> {
        let headers = format.headers(start)?;
        let table = self.read_file(&file, headers.start, (headers.end - headers.start) as usize).await?;
        let image = format.parse(start, &table, file.metadata().size, self.system.layout().high)?;
        Ok(ProgramFile { file, execution, image })
    }

    /// Whether the thread has permission to read a program's file.
    fn may_read(&self, file: &OpenFile) -> bool {
        let identity = self.credentials().identity();
        file.location().is_none_or(|location| permitted_at(location, &identity, Access::READ).is_ok())
    }

    /// The namespace of users to which the memory of a program belongs that the caller may not
    /// read: one that has the owners of its files.
    fn owner_of_unreadable(
        &self,
        credentials: &Credentials,
        program: &ProgramFile,
        interpreter: Option<&ProgramFile>,
    ) -> UserNamespace {
        let files = [Some(program), interpreter].into_iter().flatten().map(|file| file.file.metadata());
        let files: Vec<_> = files.collect();
        let mut owner = &credentials.namespace;
        let has_all = |namespace: &UserNamespace| {
            let has = |file: &Metadata| {
                namespace.has(IdKind::User, file.user) && namespace.has(IdKind::Group, file.group)
            };
            files.iter().all(has)
        };
        while let Some(parent) = owner.parent().filter(|_| !has_all(owner)) {
            owner = parent;
        }
        owner.clone()
    }

    /// Whether a thread of another process shares the directories.
    fn shares(&self, directories: &Arc<Directories>) -> bool {
        let pid = self.pid();
        let threads = self.system.life.threads.lock();
        threads.values().any(|thread| {
            let inner = thread.inner.lock();
            inner.pid != pid && Arc::ptr_eq(&inner.directories, directories)
        })
    }

    /// The credentials that the program will have, and whether they have more privileges than the
    /// caller's. A program gets no privileges if another process shares its directories and could
    /// change them, or traces it without the privilege to trace any process.
    async fn credentials_for(
        &self,
        found: &Found,
        directories: &Arc<Directories>,
    ) -> Result<(Credentials, bool)> {
        let metadata = found.location.vnode.metadata();
        // What a program gets by its file it gets only in the namespaces of users in which the file
        // system was made, and where that is mounted.
        let mount = &found.location.mount;
        let honoured = !mount.flags().contains(MountFlags::NO_SET_ID)
            && self.credentials().namespace.is_within(mount.owner())
            && directories.tree().contains(mount);
        let has = |bit| honoured && metadata.mode.contains(bit);
        // Without permission to execute for the group, the set-group-id bit means mandatory
        // locking, not another group.
        let group = has(Mode::SET_GROUP | Mode::GROUP_EXECUTE).then_some(metadata.group);
        let user = has(Mode::SET_USER).then_some(metadata.user);
        let file =
            if honoured { FilePrivileges::of(self.system.vfs(), &found.location.vnode).await? } else { None };
        let tid = self.tid();
        let may_gain = || self.system.processes().with(|table| table.tracer_may_gain(tid));
        self.credentials().for_exec(user, group, file, || self.shares(directories) || !may_gain())
    }
}

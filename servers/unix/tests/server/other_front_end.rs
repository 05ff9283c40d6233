//! A minimal second front end, next to Linux in one server. Its programs' files have another
//! format, its calls other numbers. exec finds from the file which front end serves a thread.

use crate::{DATA, EXIT, FORK, GETPID, PROCESSOR, Scripted, Step, TEXT, WAIT, executable, run_system};
use linux::Linux;
use mach::machine::simulated::Simulated;
use mach::machine::{Event, PageFault, Protection, Resume, SystemCall};
use std::ops::Range;
use std::sync::Arc;
use unix::exec::image::Segment;
use unix::exec::{Image, ImageFormat, Rights};
use unix::front_end::{CallDescription, FrontEnd, FrontEndNumber, FrontEnds, Next, Programs};
use unix::process::{Delivery, ExitStatus};
use unix::thread::{ProgramInformation, Thread};
use unix::{Error, Result};

/// The format of the front end's programs: "OTHR", then the length of the text that follows, as a
/// 32-bit number.
struct OtherFormat;

impl ImageFormat for OtherFormat {
    fn recognises(&self, start: &[u8]) -> bool {
        start.starts_with(b"OTHR")
    }

    fn headers(&self, _start: &[u8]) -> Result<Range<u64>> {
        Ok(4..8)
    }

    fn parse(&self, _start: &[u8], headers: &[u8], size: u64, limit: u64) -> Result<Image> {
        let length = u32::from_le_bytes(headers.try_into().map_err(|_| Error::ENOEXEC)?).into();
        let mut image = Image::new(TEXT + 8, false);
        let rights = Rights { read: true, write: true, execute: true };
        let text = Segment { address: TEXT, memory_size: 0x4000, offset: 0, file_size: length, rights };
        image.add(text, 1, size, limit)?;
        image.finish()
    }
}

/// A program in [`OtherFormat`].
fn other_executable() -> Vec<u8> {
    let mut file = b"OTHR".to_vec();
    file.extend(16u32.to_le_bytes());
    file.resize(16, 0);
    file
}

/// The call that adds one to its argument. It has the number of Linux' getpid.
const INCREMENT: u64 = GETPID;
/// The call that ends the process.
const END: u64 = 1;

/// The state of a thread: how many calls it has made.
#[derive(Default)]
struct Calls(std::sync::atomic::AtomicU64);

struct Other;

impl Programs for Other {
    fn format(&self) -> &dyn ImageFormat {
        &OtherFormat
    }

    fn platform(&self) -> &[u8] {
        b"other"
    }

    fn auxiliary(&self, program: &ProgramInformation<'_>) -> Vec<(u64, u64)> {
        vec![(1, program.loaded.entry)]
    }
}

impl FrontEnd<Simulated> for Other {
    type Kept = Calls;

    fn begin(&self, _thread: &Arc<Thread<Simulated>>) -> Calls {
        Calls::default()
    }

    fn try_call(&self, _: &Arc<Thread<Simulated>>, _: &Calls, call: &SystemCall) -> Option<u64> {
        (call.number == INCREMENT).then(|| call.arguments[0] + 1)
    }

    async fn serve_call(
        &self,
        thread: &Arc<Thread<Simulated>>,
        kept: &Calls,
        call: SystemCall,
    ) -> Next<Simulated> {
        let (pid, tid) = (thread.pid(), thread.tid());
        let before = kept.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        thread.system().processes().with(|table| table.enter(tid));
        match (self.try_call(thread, kept, &call), call.number) {
            (Some(value), _) => self.return_to_user(thread, kept, Resume::Return(value)).await,
            (None, END) => {
                let status = ExitStatus::Exited((call.arguments[0] + before) as u8);
                thread.system().processes().with(|table| table.begin_exit(pid, status));
                self.return_to_user(thread, kept, Resume::Continue).await
            }
            _ => self.return_to_user(thread, kept, Resume::Return(u64::MAX)).await,
        }
    }

    fn no_call(&self, _: &Calls) {}

    async fn return_to_user(
        &self,
        thread: &Arc<Thread<Simulated>>,
        _: &Calls,
        resume: Resume,
    ) -> Next<Simulated> {
        loop {
            match thread.system().processes().return_to_user(thread.tid()).await {
                Delivery::Return | Delivery::Step => return Next::Resume(resume),
                Delivery::Stopped | Delivery::Executed(_) => {}
                Delivery::Trace(stop) => {
                    thread.system().processes().stop_for_tracer(thread.tid(), stop, None).await;
                }
                Delivery::Handler(_) => panic!("it has no handlers"),
                Delivery::Exit(status) => {
                    thread.exit(status, std::future::ready(())).await;
                    return Next::Ended;
                }
            }
        }
    }

    fn describe(&self, _: &Calls, _: &SystemCall) -> CallDescription {
        CallDescription::default()
    }
}

/// The two front ends of the server under test.
struct Both {
    linux: Linux<Simulated>,
    other: Other,
}

enum Kept {
    Linux(<Linux<Simulated> as FrontEnd<Simulated>>::Kept),
    Other(Calls),
}

const LINUX: FrontEndNumber = FrontEndNumber(0);
const OTHER: FrontEndNumber = FrontEndNumber(1);

impl FrontEnd<Simulated> for Both {
    type Kept = Kept;

    fn begin(&self, thread: &Arc<Thread<Simulated>>) -> Kept {
        match thread.memory().front_end() {
            OTHER => Kept::Other(self.other.begin(thread)),
            _ => Kept::Linux(self.linux.begin(thread)),
        }
    }

    fn try_call(&self, thread: &Arc<Thread<Simulated>>, kept: &Kept, call: &SystemCall) -> Option<u64> {
        match kept {
            Kept::Linux(kept) => self.linux.try_call(thread, kept, call),
            Kept::Other(kept) => self.other.try_call(thread, kept, call),
        }
    }

    async fn serve_call(
        &self,
        thread: &Arc<Thread<Simulated>>,
        kept: &Kept,
        call: SystemCall,
    ) -> Next<Simulated> {
        match kept {
            Kept::Linux(kept) => self.linux.serve_call(thread, kept, call).await,
            Kept::Other(kept) => self.other.serve_call(thread, kept, call).await,
        }
    }

    fn no_call(&self, kept: &Kept) {
        match kept {
            Kept::Linux(kept) => self.linux.no_call(kept),
            Kept::Other(kept) => self.other.no_call(kept),
        }
    }

    async fn return_to_user(
        &self,
        thread: &Arc<Thread<Simulated>>,
        kept: &Kept,
        resume: Resume,
    ) -> Next<Simulated> {
        match kept {
            Kept::Linux(kept) => self.linux.return_to_user(thread, kept, resume).await,
            Kept::Other(kept) => self.other.return_to_user(thread, kept, resume).await,
        }
    }

    fn describe(&self, kept: &Kept, call: &SystemCall) -> CallDescription {
        match kept {
            Kept::Linux(kept) => self.linux.describe(kept, call),
            Kept::Other(kept) => self.other.describe(kept, call),
        }
    }
}

impl FrontEnds<Simulated> for Both {
    fn programs(&self, start: &[u8]) -> Option<(FrontEndNumber, &dyn Programs)> {
        let all: [(FrontEndNumber, &dyn Programs); 2] = [(LINUX, &self.linux), (OTHER, &self.other)];
        all.into_iter().find(|(_, programs)| programs.format().recognises(start))
    }
}

/// Runs the script in a system with both front ends, and with a program for each.
fn run(
    program: &str,
    script: impl Fn(&Scripted<'_>, usize, Resume) -> Step + Send + Sync + 'static,
) -> crate::Run {
    let executables = [
        ("bin/program", executable()),
        ("bin/other", other_executable()),
        ("bin/neither", b"NONE of the formats".to_vec()),
    ];
    let both = Both { linux: Linux::new(PROCESSOR), other: Other };
    run_system(both, &executables, "", &[program], script)
}

const EXECVE: u64 = 59;

/// Makes the page of the path present, then executes the program at it without arguments.
fn execute(thread: &Scripted<'_>, path: &[u8]) -> Step {
    match thread.store(DATA, path) {
        true => thread.call(EXECVE, &[DATA, 0, 0]),
        false => Some(Event::PageFault(PageFault { address: DATA, access: Protection::WRITE, ip: TEXT })),
    }
}

#[test]
fn exec_finds_the_front_end_from_the_file() {
    let run = run("other", |thread, run, resume| match run {
        0 => {
            assert!(matches!(resume, Resume::Registers(state) if state.rip == TEXT + 8));
            thread.call(INCREMENT, &[41])
        }
        1 => {
            assert_eq!(resume, Resume::Return(42), "not the process's number, as in Linux");
            thread.call(FORK, &[])
        }
        2 => {
            assert_eq!(resume, Resume::Return(u64::MAX), "it has no such call");
            thread.call(END, &[5])
        }
        other => panic!("{other} {resume:?}"),
    });
    assert_eq!(run.status, 5 + 1, "one call came before that needed the thread's task");
}

#[test]
fn a_process_changes_its_front_end_with_its_program() {
    let run = run("program", |thread, run, resume| match (thread.number, run) {
        // The command, before it executes another program.
        (2, 0) => thread.call(FORK, &[]),
        (2, 1) => {
            assert_eq!(resume, Resume::Return(3));
            thread.call(WAIT, &[3, DATA, 0, 0])
        }
        (2, 2) => {
            assert_eq!(resume, Resume::Return(3));
            thread.call(EXIT, &[0])
        }
        // The child begins as a Linux program, since fork has copied its parent.
        (3, 0) => thread.call(GETPID, &[]),
        (3, 1) => {
            assert_eq!(resume, Resume::Return(3));
            execute(thread, b"/bin/neither\0")
        }
        (3, 2) if resume == Resume::Continue => execute(thread, b"/bin/neither\0"),
        (3, 2 | 3) => {
            assert_eq!(resume, Resume::Return((-8i64) as u64), "ENOEXEC");
            execute(thread, b"/bin/other\0")
        }
        // The thread of the other front end's program.
        (4, 0) => thread.call(INCREMENT, &[6]),
        (4, 1) => {
            assert_eq!(resume, Resume::Return(7));
            // A page fault is served without asking a front end.
            Some(Event::PageFault(PageFault { address: 8, access: Protection::READ, ip: TEXT }))
        }
        other => panic!("{other:?} {resume:?}"),
    });
    assert_eq!(run.status, 0);
    assert!(run.log.iter().any(|line| line.contains("Segmentation fault")), "{:?}", run.log);
}

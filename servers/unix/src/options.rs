//! The server's arguments: `[mode=exception|bounce] [workers=NUMBER] [trace] [quiet] [greet]
//! [line=telnet] [console=TERMINAL] [root=/dev/DEVICE|root=PARTUUID=GUID] [stream=DESCRIPTOR]..
//! [time=SECONDS] [env=NAME=VALUE].. [mount=TYPE:SOURCE:PLACE].. [-- COMMAND ARG..]`.
//!
//! Words are separated by blanks. Within a word an escape sequence stands for one byte: `\n`, `\t`,
//! `\xHH`, or a backslash before any other character for that character, such as a blank or a
//! backslash. `\e` stands for nothing, so that a word can be empty.

use alloc::string::String;
use alloc::vec::Vec;

/// How system calls of programs are delivered (docs/src/architecture.md).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// The kernel sends the Unix server an exception message for each call.
    #[default]
    Exception,
    /// The kernel continues each call at the emulation library in the program's own address space.
    Bounce,
}

/// How many descriptors of the command can be streams of the host: 0, 1 and 2.
pub const STREAMS: usize = 3;

/// The options of the Unix server, which are its arguments in the boot configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// How system calls of programs reach the server.
    pub mode: Mode,
    /// How many processors the server uses, from the first on. `None`, or more than there are: all
    /// of them.
    pub workers: Option<usize>,
    /// Whether system calls are written to the log.
    pub trace: bool,
    /// Whether log messages are kept off the console.
    pub quiet: bool,
    /// Whether the console shows a greeting when the system starts.
    pub greet: bool,
    /// Whether the line of the console carries commands in addition to what is typed
    /// ([`crate::console::listen`]).
    pub commands: bool,
    /// The name of the terminal that is /dev/console, such as `tty1`. Empty: the serial line.
    pub console: String,
    /// The disk or partition whose file system is the root: its name in /dev, or `PARTUUID=GUID`.
    /// `None`: the root is in memory, and its files come from an archive.
    pub root: Option<String>,
    /// Which of the command's descriptors 0, 1 and 2 are pipes whose bytes come from the host or go
    /// to it ([`crate::streams`]), and not the console.
    pub streams: [bool; STREAMS],
    /// Seconds since 1970-01-01 00:00:00 UTC at the start of the machine.
    pub time: u64,
    /// Variables for the first program, as `NAME=VALUE`, in addition to the usual ones.
    pub environment: Vec<Vec<u8>>,
    /// File systems that are mounted before the first program runs.
    pub mounts: Vec<Mount>,
    /// The first program and its arguments; empty for the root file system's init.
    pub command: Vec<Vec<u8>>,
}

/// A file system that is to be mounted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mount {
    /// The type of the file system.
    pub kind: Vec<u8>,
    /// Where its files are: the tag of a server, or a device.
    pub source: Vec<u8>,
    /// The directory where it is mounted, an absolute path. It is made if it does not exist.
    pub place: Vec<u8>,
}

impl Mount {
    fn parse(text: &[u8]) -> Option<Mount> {
        let mut parts = text.splitn(3, |&byte| byte == b':').map(<[u8]>::to_vec);
        let mount = Mount { kind: parts.next()?, source: parts.next()?, place: parts.next()? };
        (!mount.kind.is_empty() && mount.place.starts_with(b"/")).then_some(mount)
    }
}

/// The error that an argument is not understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown(pub String);

impl Options {
    /// Parses the arguments of the server.
    pub fn parse(arguments: &str) -> Result<Options, Unknown> {
        let mut options = Options::default();
        let mut words = arguments.split_ascii_whitespace();
        for word in words.by_ref() {
            let unknown = || Unknown(String::from(word));
            match word.split_once('=') {
                None if word == "--" => break,
                None if word == "trace" => options.trace = true,
                None if word == "greet" => options.greet = true,
                None if word == "quiet" => options.quiet = true,
                Some(("mode", "exception")) => options.mode = Mode::Exception,
                Some(("mode", "bounce")) => options.mode = Mode::Bounce,
                Some(("workers", number)) => {
                    let number = number.parse().ok().filter(|&number: &usize| number > 0);
                    options.workers = Some(number.ok_or_else(unknown)?);
                }
                Some(("stream", descriptor)) => {
                    let number: Option<usize> = descriptor.parse().ok();
                    let stream = number.and_then(|number| options.streams.get_mut(number));
                    *stream.ok_or_else(unknown)? = true;
                }
                Some(("line", "telnet")) => options.commands = true,
                Some(("console", name)) => options.console = name.into(),
                Some(("root", device)) => {
                    let by_guid = device.strip_prefix("PARTUUID=").map(|guid| (device, guid));
                    let by_name = || device.strip_prefix("/dev/").map(|name| (name, name));
                    let name =
                        by_guid.or_else(by_name).and_then(|(name, key)| (!key.is_empty()).then_some(name));
                    options.root = Some(name.ok_or_else(unknown)?.into());
                }
                Some(("time", seconds)) => options.time = seconds.parse().map_err(|_| unknown())?,
                Some(("env", variable)) => options.environment.push(decode(variable).ok_or_else(unknown)?),
                Some(("mount", mount)) => {
                    options
                        .mounts
                        .push(decode(mount).and_then(|mount| Mount::parse(&mount)).ok_or_else(unknown)?);
                }
                _ => return Err(unknown()),
            }
        }
        options.command = words
            .map(|word| decode(word).ok_or_else(|| Unknown(String::from(word))))
            .collect::<Result<_, _>>()?;
        Ok(options)
    }
}

/// The bytes that a word stands for. `None`: an escape sequence in it is not complete.
fn decode(word: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut rest = word.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest.next()? {
            b'n' => bytes.push(b'\n'),
            b't' => bytes.push(b'\t'),
            b'e' => {}
            b'x' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                bytes.push((digit()? << 4 | digit()?) as u8);
            }
            other => bytes.push(other),
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_come_before_the_command() {
        let options = Options::parse(
            "mode=bounce workers=3  time=12 trace line=telnet greet console=tty1 root=/dev/vda1 stream=2 stream=0 env=A=b\\x20c -- sh -c echo\\x20'a\\\\b'\\n \\e --",
        )
        .unwrap();
        assert_eq!(
            (options.mode, options.trace, options.quiet, options.commands && options.greet, options.time),
            (Mode::Bounce, true, false, true, 12)
        );
        assert_eq!((options.console.as_str(), options.root.as_deref()), ("tty1", Some("vda1")));
        let mounts = Options::parse("mount=9p:share:/mnt/a\\x20b:c").unwrap().mounts;
        let [kind, source, place] = [&b"9p"[..], b"share", b"/mnt/a b:c"].map(<[u8]>::to_vec);
        assert_eq!(mounts, [Mount { kind, source, place }]);
        assert_eq!((options.workers, options.streams), (Some(3), [true, false, true]));
        assert_eq!(options.environment, [b"A=b c"]);
        let expected: [&[u8]; 5] = [b"sh", b"-c", b"echo 'a\\b'\n", b"", b"--"];
        assert_eq!(options.command, expected);
        assert_eq!(Options::parse(""), Ok(Options::default()));
    }

    #[test]
    fn what_is_not_understood_is_named() {
        for bad in [
            "colour",
            "mode=fast",
            "time=now",
            "line=raw",
            "stream=3",
            "stream=",
            "trace=1",
            "mount=9p:share",
            "mount=9p:share:mnt",
            "mount=:share:/mnt",
            "workers=0",
            "workers=all",
            "root=vda1",
            "root=/dev/",
            "root=PARTUUID=",
            "-- a\\x4",
            "-- a\\",
        ] {
            let Err(Unknown(word)) = Options::parse(bad) else { panic!("{bad}") };
            assert!(bad.ends_with(&word) && !word.is_empty());
        }
    }
}

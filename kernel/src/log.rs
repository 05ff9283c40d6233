//! What the kernel says, by importance: `log::info!("...")`. The boot option `log=` chooses the
//! least important level that is printed. Lines go to the console with their level and module.
use core::fmt;
use core::sync::atomic::{AtomicU8, Ordering};

use crate::console;

/// Importance of a line.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Level {
    /// Something is broken.
    Error,
    /// Something is missing or odd, and work goes on.
    Warn,
    /// What an operator wants to know once.
    Info,
    /// What an engineer wants to know.
    Debug,
    /// Every step.
    Trace,
}

impl Level {
    const ALL: [(Level, &'static str); 5] = [
        (Level::Error, "error"),
        (Level::Warn, "warn"),
        (Level::Info, "info"),
        (Level::Debug, "debug"),
        (Level::Trace, "trace"),
    ];

    /// The level called so on the command line.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == name).map(|(level, _)| *level)
    }

    fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

static LEVEL: AtomicU8 = AtomicU8::new(Level::Info as u8);

/// Prints lines of this level and more important ones from now on.
pub fn set_level(level: Level) {
    LEVEL.store(level as u8, Ordering::Relaxed);
}

/// Whether lines of this level are printed.
#[inline]
pub fn enabled(level: Level) -> bool {
    level as u8 <= LEVEL.load(Ordering::Relaxed)
}

/// Prints a line; used through the macros of this module.
pub fn write(level: Level, message: fmt::Arguments<'_>) {
    if enabled(level) {
        match level {
            Level::Info => console::print(format_args!("{message}\n")),
            _ => console::print(format_args!("{}: {message}\n", level.name())),
        }
    }
}

macro_rules! define_level_macros {
    ($dollar:tt $($name:ident $level:ident;)*) => { $(
        /// Prints a line of this level.
        #[allow(unused_macros, reason = "not every level is used in every build")]
        macro_rules! $name {
            ($dollar($dollar arguments:tt)*) => {
                if $crate::log::enabled($crate::log::Level::$level) {
                    $crate::log::write($crate::log::Level::$level, format_args!($dollar($dollar arguments)*))
                }
            };
        }
        #[allow(unused_imports, reason = "not every level is used in every build")]
        pub(crate) use $name;
    )* };
}

define_level_macros! { $
    error Error;
    warning Warn;
    info Info;
    debug Debug;
    trace Trace;
}

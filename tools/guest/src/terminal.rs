//! The terminal that `./mac` was started from.

use rustix::termios::{OptionalActions, Termios, isatty, tcgetattr, tcgetwinsize, tcsetattr};
use std::io::{stderr, stdin, stdout};

/// While this value exists, the terminal passes every key on, immediately and without echo: the
/// guest's own terminal does the echo and the editing.
pub(super) struct Terminal {
    before: Option<Termios>,
}

impl Terminal {
    /// Changes the settings if `raw` is wanted and there is a terminal.
    pub(super) fn take(raw: bool) -> Terminal {
        let before = if raw && isatty(stdin()) { tcgetattr(stdin()).ok() } else { None };
        if let Some(before) = &before {
            let mut settings = before.clone();
            settings.make_raw();
            let _ = tcsetattr(stdin(), OptionalActions::Now, &settings);
        }
        Terminal { before }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // If this fails, there is no place left to report it.
            let _ = tcsetattr(stdin(), OptionalActions::Drain, before);
        }
    }
}

/// Which of the standard descriptors are terminals.
pub(super) fn standard() -> [bool; 3] {
    [isatty(stdin()), isatty(stdout()), isatty(stderr())]
}

/// Rows and columns of the terminal that shows the output, if it is one that knows them.
pub(super) fn size() -> Option<(u16, u16)> {
    let size = tcgetwinsize(stdout()).ok()?;
    (size.ws_row > 0 && size.ws_col > 0).then_some((size.ws_row, size.ws_col))
}

//! Terminal settings (termios(3)).

use bitflags::bitflags;

bitflags! {
    /// Input modes.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct InputModes: u32 {
        /// Ignore breaks (IGNBRK).
        const IGNORE_BREAK = 1;
        /// A break interrupts (BRKINT).
        const BREAK_INTERRUPTS = 2;
        /// Mark parity errors and breaks with 0xff (PARMRK).
        const MARK_ERRORS = 4;
        /// Clear the eighth bit (ISTRIP).
        const STRIP = 8;
        /// Newline becomes carriage return (INLCR).
        const NL_TO_CR = 0x10;
        /// Ignore carriage return (IGNCR).
        const IGNORE_CR = 0x20;
        /// Carriage return becomes newline (ICRNL).
        const CR_TO_NL = 0x40;
        /// Stop and start characters control output (IXON).
        const OUTPUT_CONTROL = 0x80;
        /// Any character starts output (IXANY).
        const ANY_STARTS = 0x100;
        /// Send stop and start characters to control input (IXOFF).
        const INPUT_CONTROL = 0x200;
        /// Ring the bell when the input queue is full (IMAXBEL).
        const BELL_WHEN_FULL = 0x400;
        /// Input is UTF-8 (IUTF8).
        const UTF8 = 0x800;
        /// Upper case becomes lower case (IUCLC).
        const UPPER_TO_LOWER = 0x1000;
        /// Ignore parity errors (IGNPAR).
        const IGNORE_PARITY = 0x2000;
        /// Check parity (INPCK).
        const CHECK_PARITY = 0x4000;
    }
}

bitflags! {
    /// Output modes.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct OutputModes: u32 {
        /// Process output at all (OPOST).
        const PROCESS = 1;
        /// Newline becomes carriage return and newline (ONLCR).
        const NL_TO_CR_NL = 2;
        /// Carriage return becomes newline (OCRNL).
        const CR_TO_NL = 4;
        /// No carriage return in column 0 (ONOCR).
        const NO_CR_AT_START = 8;
        /// Newline returns the carriage (ONLRET).
        const NL_RETURNS = 0x10;
        /// Tabulators become spaces (TAB3, XTABS).
        const EXPAND_TABS = 0x20;
        /// Lower case becomes upper case (OLCUC).
        const LOWER_TO_UPPER = 0x40;
    }
}

bitflags! {
    /// Control modes. They are kept for programs; only a hardware line would act on them.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct ControlModes: u32 {
        /// Two stop bits (CSTOPB).
        const TWO_STOP_BITS = 1;
        /// Receive (CREAD).
        const RECEIVE = 2;
        /// Parity (PARENB).
        const PARITY = 4;
        /// Odd parity (PARODD).
        const ODD_PARITY = 8;
        /// Hang up when the last process closes (HUPCL).
        const HANG_UP = 0x10;
        /// Ignore modem lines (CLOCAL).
        const LOCAL = 0x20;
        /// Hardware flow control (CRTSCTS).
        const HARDWARE_CONTROL = 0x40;
    }
}

bitflags! {
    /// Local modes.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct LocalModes: u32 {
        /// Characters make signals (ISIG).
        const SIGNALS = 1;
        /// Lines are edited (ICANON).
        const CANONICAL = 2;
        /// Echo (ECHO).
        const ECHO = 4;
        /// Erasing shows (ECHOE).
        const ECHO_ERASE = 8;
        /// Killing makes a new line (ECHOK).
        const ECHO_KILL = 0x10;
        /// Newlines are echoed even without echo (ECHONL).
        const ECHO_NL = 0x20;
        /// Signals do not flush (NOFLSH).
        const NO_FLUSH = 0x40;
        /// Output of background processes stops them (TOSTOP).
        const STOP_BACKGROUND = 0x80;
        /// Control characters are echoed as ^X (ECHOCTL).
        const ECHO_CONTROL = 0x100;
        /// Erasing prints what is erased (ECHOPRT).
        const ECHO_PRINT = 0x200;
        /// Killing erases the line on the screen (ECHOKE).
        const KILL_ERASES = 0x400;
        /// Word erase, literal next, reprint work (IEXTEN).
        const EXTENDED = 0x800;
    }
}

/// The special characters; 0 disables one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of the characters in termios(3)")]
pub struct Characters {
    pub interrupt: u8,
    pub quit: u8,
    pub erase: u8,
    pub kill: u8,
    pub end_of_file: u8,
    pub start: u8,
    pub stop: u8,
    pub suspend: u8,
    pub end_of_line: u8,
    pub end_of_line_2: u8,
    pub reprint: u8,
    pub discard: u8,
    pub word_erase: u8,
    pub literal_next: u8,
    /// Bytes that a read in raw mode waits for (VMIN).
    pub minimum: u8,
    /// Tenths of a second that it waits (VTIME).
    pub time: u8,
}

/// The settings of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Input modes.
    pub input: InputModes,
    /// Output modes.
    pub output: OutputModes,
    /// Control modes.
    pub control: ControlModes,
    /// Bits of a character: 5..=8.
    pub character_size: u8,
    /// Local modes.
    pub local: LocalModes,
    /// Special characters.
    pub characters: Characters,
    /// Input speed, bits per second.
    pub input_speed: u32,
    /// Output speed, bits per second.
    pub output_speed: u32,
}

impl Default for Settings {
    /// What a new terminal has.
    fn default() -> Settings {
        Settings {
            input: InputModes::CR_TO_NL | InputModes::OUTPUT_CONTROL | InputModes::UTF8,
            output: OutputModes::PROCESS | OutputModes::NL_TO_CR_NL,
            control: ControlModes::RECEIVE,
            character_size: 8,
            local: LocalModes::SIGNALS
                | LocalModes::CANONICAL
                | LocalModes::ECHO
                | LocalModes::ECHO_ERASE
                | LocalModes::ECHO_KILL
                | LocalModes::ECHO_CONTROL
                | LocalModes::KILL_ERASES
                | LocalModes::EXTENDED,
            characters: Characters {
                interrupt: control(b'C'),
                quit: control(b'\\'),
                erase: 0x7f,
                kill: control(b'U'),
                end_of_file: control(b'D'),
                start: control(b'Q'),
                stop: control(b'S'),
                suspend: control(b'Z'),
                end_of_line: 0,
                end_of_line_2: 0,
                reprint: control(b'R'),
                discard: control(b'O'),
                word_erase: control(b'W'),
                literal_next: control(b'V'),
                minimum: 1,
                time: 0,
            },
            input_speed: 38400,
            output_speed: 38400,
        }
    }
}

/// The code of a control character.
pub(super) const fn control(letter: u8) -> u8 {
    letter & 0x1f
}

/// The size of the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowSize {
    /// Rows of characters.
    pub rows: u16,
    /// Columns of characters.
    pub columns: u16,
    /// Width, pixels.
    pub width: u16,
    /// Height, pixels.
    pub height: u16,
}

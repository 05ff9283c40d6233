//! Terminal settings (termios(3)).

use bitflags::bitflags;

bitflags! {
    /// Modes of the input (c_iflag of termios(3)).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct InputModes: u32 {
        /// Break conditions are ignored (IGNBRK).
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
        /// The input is encoded as UTF-8 (IUTF8).
        const UTF8 = 0x800;
        /// Upper case becomes lower case (IUCLC).
        const UPPER_TO_LOWER = 0x1000;
        /// Ignore parity errors (IGNPAR).
        const IGNORE_PARITY = 0x2000;
        /// The parity of input is checked (INPCK).
        const CHECK_PARITY = 0x4000;
    }
}

bitflags! {
    /// Modes of the output (c_oflag of termios(3)).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct OutputModes: u32 {
        /// Convert output; without this mode no other output mode has an effect (OPOST).
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
    /// Control modes (c_cflag of termios(3)). They are kept for programs; only a hardware line
    /// would act on them.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct ControlModes: u32 {
        /// Send two stop bits (CSTOPB).
        const TWO_STOP_BITS = 1;
        /// Enable the receiver (CREAD).
        const RECEIVE = 2;
        /// Send and check a parity bit (PARENB).
        const PARITY = 4;
        /// The parity is odd (PARODD).
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
    /// Local modes (c_lflag of termios(3)).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct LocalModes: u32 {
        /// The interrupt, quit and suspend characters send signals (ISIG).
        const SIGNALS = 1;
        /// Input is edited line by line (ICANON).
        const CANONICAL = 2;
        /// Input is echoed (ECHO).
        const ECHO = 4;
        /// The erase character erases the character on the screen (ECHOE).
        const ECHO_ERASE = 8;
        /// The kill character begins a new line on the screen (ECHOK).
        const ECHO_KILL = 0x10;
        /// Newlines are echoed even without echo (ECHONL).
        const ECHO_NL = 0x20;
        /// Signals do not discard input and output (NOFLSH).
        const NO_FLUSH = 0x40;
        /// Output of background processes stops them (TOSTOP).
        const STOP_BACKGROUND = 0x80;
        /// Control characters are echoed as ^X (ECHOCTL).
        const ECHO_CONTROL = 0x100;
        /// Erased characters are printed as they are erased (ECHOPRT).
        const ECHO_PRINT = 0x200;
        /// The kill character erases the line on the screen (ECHOKE).
        const KILL_ERASES = 0x400;
        /// The word-erase, literal-next and reprint characters work (IEXTEN).
        const EXTENDED = 0x800;
    }
}

/// The special characters (c_cc of termios(3)); 0 disables one.
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
    /// How many bytes a read in raw mode waits for (VMIN).
    pub minimum: u8,
    /// How long a read in raw mode waits, in tenths of a second (VTIME).
    pub time: u8,
}

/// The settings of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Modes of the input.
    pub input: InputModes,
    /// Modes of the output.
    pub output: OutputModes,
    /// Modes of the line's hardware.
    pub control: ControlModes,
    /// Bits of a character, 5 to 8.
    pub character_size: u8,
    /// Modes of editing, echo and signals.
    pub local: LocalModes,
    /// The special characters.
    pub characters: Characters,
    /// Speed of the input, in bits per second.
    pub input_speed: u32,
    /// Speed of the output, in bits per second.
    pub output_speed: u32,
}

impl Default for Settings {
    /// The settings of a new terminal.
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

/// The code of the control character of a letter.
pub(super) const fn control(letter: u8) -> u8 {
    letter & 0x1f
}

/// The size of a terminal's window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowSize {
    /// The window's height in rows of characters.
    pub rows: u16,
    /// The window's width in columns of characters.
    pub columns: u16,
    /// Width of the window in pixels.
    pub width: u16,
    /// Height of the window in pixels.
    pub height: u16,
}

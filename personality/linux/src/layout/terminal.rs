//! Layouts of termios, termios2 and winsize.

use super::{Fields, Writer};
use unix::Result;
use unix::tty::{Characters, ControlModes, InputModes, LocalModes, OutputModes, Settings, WindowSize};

const INPUT: [(InputModes, u32); 15] = [
    (InputModes::IGNORE_BREAK, 0o1),
    (InputModes::BREAK_INTERRUPTS, 0o2),
    (InputModes::IGNORE_PARITY, 0o4),
    (InputModes::MARK_ERRORS, 0o10),
    (InputModes::CHECK_PARITY, 0o20),
    (InputModes::STRIP, 0o40),
    (InputModes::NL_TO_CR, 0o100),
    (InputModes::IGNORE_CR, 0o200),
    (InputModes::CR_TO_NL, 0o400),
    (InputModes::UPPER_TO_LOWER, 0o1000),
    (InputModes::OUTPUT_CONTROL, 0o2000),
    (InputModes::ANY_STARTS, 0o4000),
    (InputModes::INPUT_CONTROL, 0o10000),
    (InputModes::BELL_WHEN_FULL, 0o20000),
    (InputModes::UTF8, 0o40000),
];

const OUTPUT: [(OutputModes, u32); 7] = [
    (OutputModes::PROCESS, 0o1),
    (OutputModes::LOWER_TO_UPPER, 0o2),
    (OutputModes::NL_TO_CR_NL, 0o4),
    (OutputModes::CR_TO_NL, 0o10),
    (OutputModes::NO_CR_AT_START, 0o20),
    (OutputModes::NL_RETURNS, 0o40),
    (OutputModes::EXPAND_TABS, 0o14000),
];

const CONTROL: [(ControlModes, u32); 7] = [
    (ControlModes::TWO_STOP_BITS, 0x40),
    (ControlModes::RECEIVE, 0x80),
    (ControlModes::PARITY, 0x100),
    (ControlModes::ODD_PARITY, 0x200),
    (ControlModes::HANG_UP, 0x400),
    (ControlModes::LOCAL, 0x800),
    (ControlModes::HARDWARE_CONTROL, 0x8000_0000),
];

const LOCAL: [(LocalModes, u32); 12] = [
    (LocalModes::SIGNALS, 0o1),
    (LocalModes::CANONICAL, 0o2),
    (LocalModes::ECHO, 0o10),
    (LocalModes::ECHO_ERASE, 0o20),
    (LocalModes::ECHO_KILL, 0o40),
    (LocalModes::ECHO_NL, 0o100),
    (LocalModes::NO_FLUSH, 0o200),
    (LocalModes::STOP_BACKGROUND, 0o400),
    (LocalModes::ECHO_CONTROL, 0o1000),
    (LocalModes::ECHO_PRINT, 0o2000),
    (LocalModes::KILL_ERASES, 0o4000),
    (LocalModes::EXTENDED, 0o100000),
];

/// The codes of speeds in c_cflag, with the speeds in bits per second.
const SPEEDS: [(u32, u32); 30] = [
    (0, 0),
    (50, 1),
    (75, 2),
    (110, 3),
    (134, 4),
    (150, 5),
    (200, 6),
    (300, 7),
    (600, 8),
    (1200, 9),
    (1800, 10),
    (2400, 11),
    (4800, 12),
    (9600, 13),
    (19200, 14),
    (38400, 15),
    (57600, 0x1001),
    (115_200, 0x1002),
    (230_400, 0x1003),
    (460_800, 0x1004),
    (500_000, 0x1005),
    (576_000, 0x1006),
    (921_600, 0x1007),
    (1_000_000, 0x1008),
    (1_152_000, 0x1009),
    (1_500_000, 0x100a),
    (2_000_000, 0x100b),
    (2_500_000, 0x100c),
    (3_000_000, 0x100d),
    (3_500_000, 0x100e),
];
const SPEED_MASK: u32 = 0x100f;
const OTHER_SPEED: u32 = 0x1000;
const SIZE_SHIFT: u32 = 4;

fn to_bits<F: Copy>(table: &[(F, u32)], has: impl Fn(F) -> bool) -> u32 {
    table.iter().filter(|(flag, _)| has(*flag)).fold(0, |bits, (_, bit)| bits | bit)
}

fn characters(bytes: &[u8]) -> Characters {
    let at = |index: usize| bytes.get(index).copied().unwrap_or(0);
    Characters {
        interrupt: at(0),
        quit: at(1),
        erase: at(2),
        kill: at(3),
        end_of_file: at(4),
        time: at(5),
        minimum: at(6),
        start: at(8),
        stop: at(9),
        suspend: at(10),
        end_of_line: at(11),
        reprint: at(12),
        discard: at(13),
        word_erase: at(14),
        literal_next: at(15),
        end_of_line_2: at(16),
    }
}

/// Writes the settings as a termios2, of which termios is the first 36 bytes.
pub fn to_termios(settings: &Settings) -> [u8; 44] {
    let c = &settings.characters;
    let characters = [
        c.interrupt,
        c.quit,
        c.erase,
        c.kill,
        c.end_of_file,
        c.time,
        c.minimum,
        0,
        c.start,
        c.stop,
        c.suspend,
        c.end_of_line,
        c.reprint,
        c.discard,
        c.word_erase,
        c.literal_next,
        c.end_of_line_2,
        0,
        0,
    ];
    let speed = SPEEDS.iter().find(|(speed, _)| *speed == settings.output_speed);
    let speed = speed.map_or(OTHER_SPEED, |(_, code)| *code);
    let size = u32::from(settings.character_size.clamp(5, 8) - 5) << SIZE_SHIFT;
    let control = to_bits(&CONTROL, |flag| settings.control.contains(flag)) | speed | size;
    Writer::new()
        .u32(0, to_bits(&INPUT, |flag| settings.input.contains(flag)))
        .u32(4, to_bits(&OUTPUT, |flag| settings.output.contains(flag)))
        .u32(8, control)
        .u32(12, to_bits(&LOCAL, |flag| settings.local.contains(flag)))
        .bytes(17, &characters)
        .u32(36, settings.input_speed)
        .u32(40, settings.output_speed)
        .done()
}

/// Reads the settings from a termios (36 bytes) or a termios2 (44).
pub fn termios(bytes: &[u8]) -> Result<Settings> {
    let mut settings = Settings::default();
    let (input, output, control, local) =
        (bytes.u32_at(0)?, bytes.u32_at(4)?, bytes.u32_at(8)?, bytes.u32_at(12)?);
    INPUT.iter().for_each(|(flag, bit)| settings.input.set(*flag, input & bit != 0));
    OUTPUT.iter().for_each(|(flag, bit)| settings.output.set(*flag, output & bit == *bit));
    CONTROL.iter().for_each(|(flag, bit)| settings.control.set(*flag, control & bit != 0));
    LOCAL.iter().for_each(|(flag, bit)| settings.local.set(*flag, local & bit != 0));
    settings.character_size = (control >> SIZE_SHIFT & 3) as u8 + 5;
    settings.characters = characters(&bytes[17..36]);
    let coded = SPEEDS.iter().find(|(_, code)| *code == control & SPEED_MASK).map(|(speed, _)| *speed);
    let speed = match coded {
        Some(speed) => speed,
        None => bytes.u32_at(40).unwrap_or(settings.output_speed),
    };
    settings.output_speed = speed;
    settings.input_speed = match coded {
        Some(speed) => speed,
        None => bytes.u32_at(36).unwrap_or(speed),
    };
    Ok(settings)
}

/// Writes the size of a window as a winsize.
pub fn to_window(window: WindowSize) -> [u8; 8] {
    Writer::new().u16(0, window.rows).u16(2, window.columns).u16(4, window.width).u16(6, window.height).done()
}

/// Reads the size of a window from a winsize.
pub fn window(bytes: &[u8; 8]) -> Result<WindowSize> {
    Ok(WindowSize {
        rows: bytes.u16_at(0)?,
        columns: bytes.u16_at(2)?,
        width: bytes.u16_at(4)?,
        height: bytes.u16_at(6)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_survive_conversion_both_ways() {
        let mut settings = Settings::default();
        let bytes = to_termios(&settings);
        // A new terminal has the flags that it has on Linux: icrnl ixon iutf8, opost onlcr, 38400
        // cs8 cread, isig icanon echo...
        assert_eq!((bytes.u32_at(0), bytes.u32_at(4)), (Ok(0o42400), Ok(0o5)));
        assert_eq!((bytes.u32_at(8), bytes.u32_at(12)), (Ok(0o277), Ok(0o105073)));
        assert_eq!((bytes[17], bytes[17 + 2], bytes[17 + 6]), (3, 0x7f, 1));
        assert_eq!(termios(&bytes), Ok(settings));
        assert_eq!(termios(&bytes[..36]), Ok(settings));
        settings.output_speed = 12345;
        settings.input_speed = 12345;
        settings.character_size = 7;
        assert_eq!(termios(&to_termios(&settings)), Ok(settings));
        let size = WindowSize { rows: 24, columns: 80, width: 1, height: 2 };
        assert_eq!(window(&to_window(size)), Ok(size));
    }
}

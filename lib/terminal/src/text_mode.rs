//! The characters of the VGA's text mode: code page 437.

/// The characters of the numbers 1 to 31 and 128 to 254. Between them they are those of ASCII.
const LOW: &str = "☺☻♥♦♣♠•◘○◙♂♀♪♫☼►◄↕‼¶§▬↨↑↓→←∟↔▲▼";
const HIGH: &str = "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»\
                    ░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀\
                    αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■";
/// What stands for a character that the code page has not.
const UNKNOWN: u8 = b'?';

/// The number that shows a character.
pub fn number(character: char) -> u8 {
    let within = |first: u8, characters: &str| {
        (first..=u8::MAX)
            .zip(characters.chars())
            .find(|&(_, other)| other == character)
            .map(|(number, _)| number)
    };
    match character {
        ' '..='~' => character as u8,
        '\u{a0}' => b' ',
        // Corners and lines that the code page has in one form only.
        '╭' => 0xda,
        '╮' => 0xbf,
        '╰' => 0xc0,
        '╯' => 0xd9,
        '━' => 0xc4,
        '┃' => 0xb3,
        '◆' => 4,
        '\u{2010}'..='\u{2015}' => b'-',
        '\u{2018}' | '\u{2019}' => b'\'',
        '\u{201c}' | '\u{201d}' => b'"',
        _ => within(0x80, HIGH).or_else(|| within(1, LOW)).unwrap_or(UNKNOWN),
    }
}

/// The character that a number shows.
pub fn character(number: u8) -> char {
    let within = |at: u8, characters: &str| characters.chars().nth(at.into());
    let found = match number {
        b' '..=b'~' => Some(char::from(number)),
        1..=31 => within(number - 1, LOW),
        128.. => within(number - 128, HIGH),
        _ => None,
    };
    found.unwrap_or(' ')
}

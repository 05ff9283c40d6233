//! The characters that are printed on the keys of a keyboard.

/// Keys whose codes follow each other. Each text has one character for each key.
#[derive(Debug)]
struct Row {
    /// The code of the first key.
    first: u16,
    /// The characters of the keys alone.
    plain: &'static str,
    /// The characters with Shift.
    shifted: &'static str,
    /// The characters with AltGr, a space for each key that has none. `None`: no key has one.
    graphic: Option<&'static str>,
}

const fn row(first: u16, plain: &'static str, shifted: &'static str) -> Row {
    Row { first, plain, shifted, graphic: None }
}

const fn row_of_three(first: u16, plain: &'static str, shifted: &'static str, graphic: &'static str) -> Row {
    Row { first, plain, shifted, graphic: Some(graphic) }
}

/// The characters of a kind of keyboard. Keys that bear no character are the same on all.
#[derive(Debug)]
pub struct Layout {
    /// The name, as Linux has it.
    pub name: &'static str,
    /// Whether the right Alt key is AltGr, which chooses a third character. Otherwise that key has
    /// no effect.
    pub(crate) has_graphic: bool,
    rows: &'static [Row],
}

/// The layouts that exist. The first one is the usual one.
pub static LAYOUTS: [&Layout; 2] = [&US, &GERMAN];

/// The American layout.
pub static US: Layout = Layout {
    name: "us",
    has_graphic: false,
    rows: &[
        row(2, "1234567890-=", "!@#$%^&*()_+"),
        row(16, "qwertyuiop[]", "QWERTYUIOP{}"),
        row(30, "asdfghjkl;'`", "ASDFGHJKL:\"~"),
        row(43, "\\zxcvbnm,./", "|ZXCVBNM<>?"),
        row(57, " ", " "),
        row(86, "<", ">"),
    ],
};

/// The German layout, without dead keys.
pub static GERMAN: Layout = Layout {
    name: "de",
    has_graphic: true,
    rows: &[
        row_of_three(2, "1234567890ß´", "!\"§$%&/()=?`", " ²³   {[]}\\ "),
        row_of_three(16, "qwertzuiopü+", "QWERTZUIOPÜ*", "@ €        ~"),
        row(30, "asdfghjklöä^", "ASDFGHJKLÖÄ°"),
        row_of_three(43, "#yxcvbnm,.-", "'YXCVBNM;:_", "       µ   "),
        row(57, " ", " "),
        row_of_three(86, "<", ">", "|"),
    ],
};

/// Which of a key's characters is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    Plain,
    Shifted,
    Graphic,
}

impl Layout {
    /// The layout of this name.
    pub fn named(name: &str) -> Option<&'static Layout> {
        LAYOUTS.into_iter().find(|layout| layout.name == name)
    }

    /// A character of the key with this code, if it bears one.
    pub(crate) fn character(&self, code: u16, level: Level) -> Option<char> {
        self.rows.iter().find_map(|row| {
            let text = match level {
                Level::Plain => Some(row.plain),
                Level::Shifted => Some(row.shifted),
                Level::Graphic => row.graphic,
            };
            let character = text?.chars().nth(code.checked_sub(row.first)?.into())?;
            (level != Level::Graphic || character != ' ').then_some(character)
        })
    }

    /// Whether the key bears a letter: a small one alone, and the capital one with Shift.
    pub(crate) fn is_letter(&self, code: u16) -> bool {
        let plain = self.character(code, Level::Plain);
        let shifted = self.character(code, Level::Shifted);
        plain.zip(shifted).is_some_and(|(small, capital)| {
            small != capital && small.to_uppercase().eq(core::iter::once(capital))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_row_has_one_character_for_each_key_and_no_key_is_in_two_rows() {
        for layout in LAYOUTS {
            let mut codes = BTreeSet::new();
            for row in layout.rows {
                let count = row.plain.chars().count();
                assert_eq!(row.shifted.chars().count(), count, "{} {}", layout.name, row.first);
                assert!(row.graphic.is_none_or(|text| text.chars().count() == count));
                assert!((row.first..).take(count).all(|code| codes.insert(code)));
                assert!(layout.has_graphic || row.graphic.is_none());
            }
        }
    }

    #[test]
    fn every_layout_can_type_ascii() {
        for layout in LAYOUTS {
            let can = |wanted: char| {
                [Level::Plain, Level::Shifted, Level::Graphic]
                    .into_iter()
                    .any(|level| (0..128).any(|code| layout.character(code, level) == Some(wanted)))
            };
            assert!((' '..='~').all(can), "{}", layout.name);
            assert!(('a'..='z').all(|letter| {
                let is_on = |&code: &u16| layout.character(code, Level::Plain) == Some(letter);
                (0..128).find(is_on).is_some_and(|code| layout.is_letter(code))
            }));
        }
    }

    #[test]
    fn a_layout_is_found_by_its_name() {
        assert_eq!(Layout::named("de").map(|layout| layout.name), Some("de"));
        assert!(Layout::named("xx").is_none());
        let letters = |layout: &Layout| (0..600).filter(|&code| layout.is_letter(code)).count();
        assert_eq!((letters(&US), letters(&GERMAN)), (26, 29));
    }
}

//! Text as the keys of the machine's keyboard, for commands of QEMU's monitor.

/// The commands that type a text at a keyboard with the layout `us`, a key at a time. Characters
/// that [`refused`] finds are left out.
pub(crate) fn commands(text: &str) -> impl Iterator<Item = String> {
    text.chars().filter_map(key).map(|key| format!("sendkey {key}"))
}

/// The first character of a text that has no key here.
pub(crate) fn refused(text: &str) -> Option<char> {
    text.chars().find(|&character| key(character).is_none())
}

/// The name of a character's key.
fn key(character: char) -> Option<String> {
    let name = match character {
        'a'..='z' | '0'..='9' => return Some(character.into()),
        'A'..='Z' => return Some(format!("shift-{}", character.to_ascii_lowercase())),
        ' ' => "spc",
        '\n' => "ret",
        '\t' => "tab",
        '-' => "minus",
        '=' => "equal",
        '.' => "dot",
        ',' => "comma",
        '/' => "slash",
        ';' => "semicolon",
        '\'' => "apostrophe",
        '\\' => "backslash",
        '[' => "bracket_left",
        ']' => "bracket_right",
        '|' => "shift-backslash",
        '>' => "shift-dot",
        '<' => "shift-comma",
        '_' => "shift-minus",
        '$' => "shift-4",
        '&' => "shift-7",
        '"' => "shift-apostrophe",
        _ => return None,
    };
    Some(name.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_typed_key_by_key() {
        let typed: Vec<String> = commands("uname -A\n").collect();
        let keys = ["u", "n", "a", "m", "e", "spc", "minus", "shift-a", "ret"];
        assert_eq!(typed, keys.map(|key| format!("sendkey {key}")));
        assert_eq!((refused("a|b"), refused("a\u{e9}b")), (None, Some('\u{e9}')));
    }
}

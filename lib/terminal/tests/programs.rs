//! What real programs write, and what is to be seen then. The bytes of `tests/recorded` are the
//! output of the programs on a terminal of 80 columns and 25 rows with `TERM=linux`. The text next
//! to them is what another implementation of the terminal shows for them: the characters, the
//! colours of the characters, and those of the background, each as 25 lines, then row and column of
//! the cursor, or that it is hidden.

use terminal::{Cell, Colour, Style, Terminal};

fn number(colour: Colour) -> char {
    match colour {
        Colour::Indexed(number) => char::from_digit(number.into(), 16).unwrap_or('?'),
        Colour::Default => '.',
        Colour::Rgb(..) => '?',
    }
}

fn lines(terminal: &Terminal, of: impl Fn(&Cell) -> char, blank: char) -> String {
    let line = |row| {
        let line: String = terminal.row(row).iter().map(&of).collect();
        line.trim_end_matches(blank).to_string() + "\n"
    };
    (0..terminal.rows()).map(line).collect()
}

fn seen(terminal: &Terminal) -> String {
    let characters = lines(terminal, |cell| cell.character, ' ');
    let ink = |cell: &Cell| if cell.character == ' ' { ' ' } else { number(cell.ink) };
    let paper = |cell: &Cell| match cell.style.contains(Style::REVERSE) && cell.character != ' ' {
        true => 'r',
        false => number(cell.paper),
    };
    let cursor = terminal.cursor().map_or("hidden".into(), |(row, column)| format!("{row} {column}"));
    let (inks, papers) = (lines(terminal, ink, ' '), lines(terminal, paper, '.'));
    format!("{characters}{inks}{papers}cursor {cursor}\n")
}

fn check(bytes: &[u8], expected: &str) {
    let mut terminal = Terminal::new(80, 25, 100);
    terminal.write(bytes);
    let seen = seen(&terminal);
    for (line, (seen, expected)) in seen.lines().zip(expected.lines()).enumerate() {
        assert_eq!(seen, expected, "line {line}");
    }
    // The bytes may come in any pieces.
    let mut slow = Terminal::new(80, 25, 100);
    bytes.chunks(3).for_each(|piece| slow.write(piece));
    assert!(self::seen(&slow) == seen);
}

#[test]
fn an_editor_with_two_windows() {
    check(include_bytes!("recorded/vim.bytes"), include_str!("recorded/vim.txt"));
}

#[test]
fn tables_of_processes() {
    check(include_bytes!("recorded/top.bytes"), include_str!("recorded/top.txt"));
    check(include_bytes!("recorded/htop.bytes"), include_str!("recorded/htop.txt"));
}

#[test]
fn a_pager_that_scrolls_back() {
    check(include_bytes!("recorded/less.bytes"), include_str!("recorded/less.txt"));
}

#[test]
fn every_capability_that_changes_the_screen() {
    check(include_bytes!("recorded/drawing.bytes"), include_str!("recorded/drawing.txt"));
}

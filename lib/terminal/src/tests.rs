//! Tests of single sequences, and of any bytes at all.

use crate::{Cell, Colour, Font, Modes, Style, Terminal, text_mode};
use proptest::prelude::*;

fn shown(text: &str) -> Terminal {
    let mut terminal = Terminal::new(10, 4, 5);
    terminal.write(text.as_bytes());
    terminal
}

fn text(terminal: &Terminal) -> Vec<String> {
    (0..terminal.rows()).map(|row| terminal.text(row)).collect()
}

fn check(bytes: &str, lines: [&str; 4]) {
    assert_eq!(text(&shown(bytes)), lines, "{bytes:?}");
}

#[test]
fn text_wraps_after_the_last_column_has_been_written() {
    check("one\r\ntwo\r\n0123456789abc\r\nlast", ["two", "0123456789", "abc", "last"]);
    check("0123456789\r\nx", ["0123456789", "x", "", ""]);
    check("0123456789\x08x", ["01234567x9", "", "", ""]);
    check("\x1b[?7l0123456789abc", ["012345678c", "", "", ""]);
    check("012345678漢x", ["012345678", "漢 x", "", ""]);
    check("a\u{301}b\tc\td", ["ab      cd", "", "", ""]);
    check("\x1b[3g\x1b[1;4H\x1bH\r\ta", ["   a", "", "", ""]);
}

#[test]
fn the_cursor_moves_and_cells_are_erased() {
    check("abcdef\x1b[3D\x1b[K\x1b[2;3Hxy\x1b[A\x1b[1Gz", ["zbc", "  xy", "", ""]);
    check("abc\x1b[2;2Hdef\x1b[1J.", ["", "    .", "", ""]);
    check("abcdef\x1b[2G\x1b[2X\x1b[3;9Hx\x1b[2K", ["a  def", "", "", ""]);
    check("abcdef\r\x1b[2Pz\x1b[2@\x1b[4hyx\x1b[4lw", ["zyxw def", "", "", ""]);
    check("a\r\nb\r\nc\x1b[2H\x1b[Ld\x1b[H\x1b[M", ["d", "b", "c", ""]);
    check("\x1b[99;99Hx\x1b[99A\x1b[99Dy\x1b[3dz\x1b[5`w\x1b[2ev", ["y", "", " z  w", "     v   x"]);
    check("\x1b7ab\x1b8c\x1b[sd\x1b[ue", ["ce", "", "", ""]);
    check("x\x1b[3b\x1b#8\x1bcy", ["y", "", "", ""]);
    // Numbers that no screen has.
    check("\x1b[65535;65535H\x1b[65535B\x1b[65535C\x1b[65535Px\x1b[65535S", [""; 4]);
}

#[test]
fn only_the_region_scrolls() {
    check("top\x1b[2;3r\x1b[2;1Ha\r\nb\r\nc\x1b[4;1Hend", ["top", "b", "c", "end"]);
    check("top\x1b[2;3r\x1b[2;1Ha\r\nb\x1b[2;1H\x1bMnew", ["top", "new", "a", ""]);
    check("top\x1b[2;3r\x1b[?6ha\x1b[9;1Hb\x1b[?6lc", ["cop", "a", "b", ""]);
    // No region: it ends before it begins, or outside the screen.
    check("\x1b[3;2r\x1b[1;9r\x1b[4;1Ha\nb", ["", "", "a", " b"]);
}

#[test]
fn letters_draw_lines_and_strings_for_the_terminal_are_not_shown() {
    check("\x1b(0lqk\x1b(Bq\r\n\x1b)0\x0exjx\x0fx", ["┌─┐q", "│┘│x", "", ""]);
    check("\x1b]0;title\x07a\x1b_x\x1b\\b\x1bPq#0\x1b\\c", ["abc", "", "", ""]);
    // Two strings have no end of their own.
    check("\x1b]Ra\x1b]P1123456b\x1b]P1xc\x1b]Px\x1b[Hd", ["dbxcx", "", "", ""]);
}

#[test]
fn the_palette_changes_until_it_is_reset() {
    let mut terminal = shown("\x1b]P1123456\x1b]PFabcdef");
    let rgb = |terminal: &Terminal, number| terminal.palette().rgb(Colour::Indexed(number));
    assert_eq!((rgb(&terminal, 1), rgb(&terminal, 15)), ([0x12, 0x34, 0x56], [0xab, 0xcd, 0xef]));
    terminal.write(b"\x1b]R");
    assert_eq!((rgb(&terminal, 1), rgb(&terminal, 3)), ([0xaa, 0, 0], [0xaa, 0x55, 0]));
    assert_eq!((rgb(&terminal, 196), rgb(&terminal, 255)), ([255, 0, 0], [238; 3]));
    assert_eq!(terminal.palette().nearest(Colour::Rgb(250, 90, 80)), 9);
    assert_eq!(terminal.palette().nearest(Colour::Indexed(21)), 4);
}

#[test]
fn questions_are_answered_and_no_flood_of_them_takes_memory() {
    let mut terminal = shown("ab\x1b[6n\x1b[c\x1b[5n\x1bZ\x1b[2;3r\x1b[?6h\x1b[6n");
    assert_eq!(terminal.take_answers(), b"\x1b[1;3R\x1b[?6c\x1b[0n\x1b[?6c\x1b[1;1R");
    terminal.write(&b"\x1b[c".repeat(10_000));
    assert!(terminal.take_answers().len() <= 1024);
    terminal.write(b"\x1b[5n");
    assert_eq!(terminal.take_answers(), b"\x1b[0n");
}

#[test]
fn styles_follow_the_text() {
    let terminal =
        shown("\x1b[1;31ma\x1b[38;5;208;4mb\x1b[mc\x1b[7md\x1b[38:2::1:2:3;48;2;4;5;6;27me\x1b[4:0;2mf");
    let cell = |column| terminal.row(0)[column];
    assert_eq!((cell(0).ink, cell(0).style), (Colour::Indexed(1), Style::BOLD));
    assert_eq!(cell(0).colours(false), (Colour::Indexed(9), Colour::Indexed(0)));
    assert_eq!((cell(1).ink, cell(1).style), (Colour::Indexed(208), Style::BOLD | Style::UNDERLINE));
    assert_eq!(cell(2), Cell { character: 'c', ..Cell::BLANK });
    assert_eq!(cell(3).colours(false), (Colour::Indexed(0), Colour::Indexed(7)));
    assert_eq!(cell(3).colours(true), (Colour::Indexed(7), Colour::Indexed(0)));
    assert_eq!((cell(4).ink, cell(4).paper), (Colour::Rgb(1, 2, 3), Colour::Rgb(4, 5, 6)));
    assert_eq!(cell(5).colours(false).0, Colour::Indexed(8));
    // What is erased has the background that was chosen, and nothing else of it.
    let erased = shown("\x1b[44;7;1m\x1b[K").row(0)[3];
    assert_eq!(erased, Cell { paper: Colour::Indexed(4), ..Cell::BLANK });
}

#[test]
fn modes_are_what_the_program_has_chosen_last() {
    let mut terminal = shown("\x1b[?1;25l\x1b=\x1b[?1h");
    assert_eq!(terminal.cursor(), None);
    assert_eq!(terminal.modes(), Modes::APPLICATION_CURSOR | Modes::APPLICATION_KEYPAD | Modes::WRAP);
    terminal.write(b"\x1bc");
    assert_eq!((terminal.cursor(), terminal.modes()), (Some((0, 0)), Modes::WRAP | Modes::CURSOR));
}

#[test]
fn lines_that_have_left_the_screen_are_seen_again() {
    let mut terminal = shown("1\r\n2\r\n3\r\n4\r\n5\r\n6\r\n7\r\n8\r\n9\r\n10\r\n11");
    terminal.scroll(2);
    assert_eq!((text(&terminal), terminal.cursor()), (["6", "7", "8", "9"].map(String::from).into(), None));
    terminal.scroll(100);
    assert_eq!(text(&terminal), ["3", "4", "5", "6"]);
    terminal.scroll(-4);
    assert_eq!(text(&terminal), ["7", "8", "9", "10"]);
    terminal.write(b"!");
    assert_eq!(text(&terminal), ["8", "9", "10", "11!"]);
    terminal.write(b"\x1b[3J");
    terminal.scroll(1);
    assert_eq!(text(&terminal), [""; 4]);
}

#[test]
fn text_is_the_same_in_pieces_of_any_size() {
    let bytes = "aöbüü漢│c\u{10348}\u{1f600}".as_bytes();
    let mut expected = Terminal::new(40, 2, 0);
    expected.write(bytes);
    for size in 1..bytes.len() {
        let mut terminal = Terminal::new(40, 2, 0);
        bytes.chunks(size).for_each(|piece| terminal.write(piece));
        assert_eq!(terminal.text(0), expected.text(0), "{size}");
    }
    let mut broken = Terminal::new(10, 1, 0);
    broken.write(b"\xc3(\xe2\x82");
    broken.write(b"\x1b[Cx\xff.");
    assert_eq!(broken.text(0), "\u{fffd}(\u{fffd} x\u{fffd}.");
}

#[test]
fn a_glyph_is_found_by_its_character_and_a_character_by_its_glyph() {
    let font = Font::new();
    for character in (' '..='~').chain("─│┌┐└┘├┤┬┴┼█▒äöüßéñ".chars()) {
        assert_eq!(font.character(font.glyph(character)), Some(character));
    }
    assert_eq!(font.glyph('漢'), font.glyph('\u{fffd}'));
    assert_eq!(font.glyph(' '), &[0; 16]);
}

#[test]
fn the_text_mode_has_the_characters_of_its_code_page() {
    for number in (1..=126).chain(128..=254) {
        assert_eq!(text_mode::number(text_mode::character(number)), number);
    }
    assert_eq!(text_mode::number('─'), 0xc4);
    assert_eq!(text_mode::number('漢'), b'?');
}

proptest! {
    #[test]
    fn no_bytes_make_a_terminal_panic(
        pieces in proptest::collection::vec(
            prop_oneof![
                "[ -~äß漢\n\r\t\x0e\x0f\x08]{1,12}".prop_map(String::into_bytes),
                "\x1b\\[[?]?[0-9;:]{0,12}[@-~]".prop_map(String::into_bytes),
                "\x1b[#()%\\]P_]?[ -~]{1,3}".prop_map(String::into_bytes),
                proptest::collection::vec(any::<u8>(), 1..12),
            ],
            0..40,
        ),
        (columns, rows, history) in (0usize..12, 0usize..5, 0usize..4),
    ) {
        let mut terminal = Terminal::new(columns, rows, history);
        for (index, piece) in pieces.iter().enumerate() {
            terminal.write(piece);
            if let Some((row, column)) = terminal.cursor() {
                prop_assert!(row < terminal.rows() && column < terminal.columns());
            }
            terminal.scroll(index as isize - 3);
            prop_assert!((0..terminal.rows()).all(|row| terminal.row(row).len() == terminal.columns()));
            terminal.take_answers();
        }
    }
}

//! Draws a screen as a picture in SVG.

use super::screen::{Screen, text};
use std::fmt::Write;
use vt100::{Cell, Color};

/// The size of a cell in pixels.
const WIDTH: f64 = 8.4;
const HEIGHT: f64 = 18.0;
const MARGIN: f64 = 14.0;
const PAPER: &str = "#16181d";
const INK: &str = "#d6d9e0";
/// The first sixteen colours of the palette.
const PALETTE: [&str; 16] = [
    "#2b2e37", "#e06c75", "#98c379", "#d7b26d", "#6aa8f0", "#c678dd", "#56b6c2", "#c8ccd4", "#737987",
    "#ff7b86", "#b5e890", "#f0cd86", "#8cc2ff", "#dd9af0", "#7fd6e0", "#ffffff",
];

/// The picture of a screen in SVG.
pub fn svg(screen: &Screen) -> String {
    let (rows, columns) = screen.size();
    let (width, height) = (columns as f64 * WIDTH + 2.0 * MARGIN, rows as f64 * HEIGHT + 2.0 * MARGIN);
    let mut picture = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         font-family=\"DejaVu Sans Mono, Menlo, Consolas, monospace\" font-size=\"14\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{PAPER}\"/>\n"
    );
    for row in 0..rows {
        draw_row(&mut picture, row, &screen.cells(row).collect::<Vec<_>>());
    }
    if screen.shows_cursor() {
        let (row, column) = screen.cursor();
        let (x, y) = place(row, column);
        let _ = writeln!(
            picture,
            "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"{INK}\" \
             fill-opacity=\"0.5\"/>",
            y - 14.0
        );
    }
    picture + "</svg>\n"
}

/// The position of a cell's text: its left end and its base line.
fn place(row: usize, column: usize) -> (f64, f64) {
    (MARGIN + column as f64 * WIDTH, MARGIN + row as f64 * HEIGHT + 14.0)
}

/// Draws a row. Neighbouring cells that look alike are drawn together. Writing to a string cannot
/// fail.
fn draw_row(picture: &mut String, row: usize, cells: &[&Cell]) {
    let mut column = 0;
    while column < cells.len() {
        let first = cells[column];
        let end = cells[column..].iter().position(|cell| style(cell) != style(first));
        let end = end.map_or(cells.len(), |length| column + length);
        let text: String = cells[column..end].iter().map(|cell| text(cell)).collect();
        let (ink, paper) = colours(first);
        let (x, y) = place(row, column);
        let length = (end - column) as f64 * WIDTH;
        if paper != PAPER {
            let _ = writeln!(
                picture,
                "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"{length:.1}\" height=\"{HEIGHT}\" fill=\"{paper}\"/>",
                y - 14.0
            );
        }
        let shown = text.trim_end();
        if !shown.is_empty() {
            let weight = if first.bold() { " font-weight=\"bold\"" } else { "" };
            let line = if first.underline() { " text-decoration=\"underline\"" } else { "" };
            let length = shown.chars().count() as f64 * WIDTH;
            let _ = writeln!(
                picture,
                "<text x=\"{x:.1}\" y=\"{y:.1}\" fill=\"{ink}\"{weight}{line} textLength=\"{length:.1}\" \
                 xml:space=\"preserve\">{}</text>",
                shown.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
            );
        }
        column = end;
    }
}

/// The properties that cells must share to be drawn together.
fn style(cell: &Cell) -> (Color, Color, bool, bool, bool) {
    (cell.fgcolor(), cell.bgcolor(), cell.bold(), cell.underline(), cell.inverse())
}

/// The colours of a cell: that of the text and that of the background.
fn colours(cell: &Cell) -> (String, String) {
    let (ink, paper) = (colour(cell.fgcolor(), INK), colour(cell.bgcolor(), PAPER));
    if cell.inverse() { (paper, ink) } else { (ink, paper) }
}

/// A colour as SVG. The palette of 256 colours has sixteen, then a cube of 6 x 6 x 6, then greys.
fn colour(colour: Color, default: &str) -> String {
    let level = |step: u8| if step == 0 { 0 } else { 55 + 40 * step };
    let (red, green, blue) = match colour {
        Color::Default => return default.into(),
        Color::Idx(number @ 0..16) => return PALETTE[usize::from(number)].into(),
        Color::Idx(number @ 16..232) => {
            let cube = number - 16;
            (level(cube / 36), level(cube / 6 % 6), level(cube % 6))
        }
        Color::Idx(number) => {
            let grey = 8 + 10 * (number - 232);
            (grey, grey, grey)
        }
        Color::Rgb(red, green, blue) => (red, green, blue),
    };
    format!("#{red:02x}{green:02x}{blue:02x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_have_their_colours_and_places_and_a_hidden_cursor_is_not_drawn() {
        let mut screen = Screen::new(2, 10);
        screen.write(b"a<b\r\n\x1b[1;34mdir\x1b[0;7m x\x1b[m");
        let picture = svg(&screen);
        for part in [
            ">a&lt;b</text>",
            "fill=\"#6aa8f0\" font-weight=\"bold\" textLength=\"25.2\"",
            ">dir</text>",
            "fill=\"#16181d\"",
        ] {
            assert!(picture.contains(part), "{part}: {picture}");
        }
        let cursors = |screen: &Screen| svg(screen).matches("fill-opacity").count();
        assert_eq!(cursors(&screen), 1);
        screen.write(b"\x1b[?25l");
        assert_eq!(cursors(&screen), 0);
        let colours = [196, 232, 16].map(|number| colour(Color::Idx(number), INK));
        assert_eq!(colours, ["#ff0000", "#080808", "#000000"]);
    }
}

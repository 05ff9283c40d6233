//! Line charts as SVG, without scripts, for the report.

use super::series::Point;
use std::fmt::Write;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 16.0;
const BOTTOM: f64 = 44.0;
/// Distinguishable also without colours: lines differ in dashes, too.
const LINES: [(&str, &str); 6] = [
    ("#1f5fa8", "none"),
    ("#b5432a", "6 3"),
    ("#3b7d3b", "2 3"),
    ("#7a4da0", "8 3 2 3"),
    ("#8a6d1a", "4 4"),
    ("#555555", "1 4"),
];

/// A line of a chart.
pub(crate) struct Line<'a> {
    pub name: &'a str,
    pub points: &'a [Point],
}

/// The chart; `across` and `up` name the axes. Both axes begin at 0.
pub(crate) fn svg(lines: &[Line<'_>], across: &str, up: &str) -> String {
    let points = || lines.iter().flat_map(|line| line.points);
    let largest = |value: fn(&Point) -> f64| points().map(value).fold(1.0, f64::max);
    let (right, top) =
        (step_above(largest(|point| point.parameter)), step_above(largest(|point| point.value)));
    let x = |parameter: f64| LEFT + parameter / right.0 * (WIDTH - LEFT - RIGHT);
    let y = |value: f64| HEIGHT - BOTTOM - value / top.0 * (HEIGHT - TOP - BOTTOM);
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} {}\" role=\"img\" font-family=\"sans-serif\" font-size=\"11\">\n",
        HEIGHT + 16.0 * lines.len() as f64
    );
    for (end, step, horizontal) in [(right.0, right.1, true), (top.0, top.1, false)] {
        let mut at = 0.0;
        while at <= end * 1.0001 {
            let (x1, y1, x2, y2) = if horizontal {
                (x(at), y(0.0), x(at), y(top.0))
            } else {
                (x(0.0), y(at), x(right.0), y(at))
            };
            let _ = writeln!(svg, "<path d=\"M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}\" stroke=\"#ddd\"/>");
            let (tx, ty, anchor) = if horizontal {
                (x(at), y(0.0) + 14.0, "middle")
            } else {
                (x(0.0) - 6.0, y(at) + 4.0, "end")
            };
            let _ = writeln!(
                svg,
                "<text x=\"{tx:.1}\" y=\"{ty:.1}\" text-anchor=\"{anchor}\">{}</text>",
                (at * 1e6).round() / 1e6
            );
            at += step;
        }
    }
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\n<text x=\"4\" y=\"11\">{}</text>",
        x(right.0 / 2.0),
        HEIGHT - 12.0,
        escape(across),
        escape(up)
    );
    for (index, line) in lines.iter().enumerate() {
        let (colour, dashes) = LINES[index % LINES.len()];
        let path: Vec<String> = line
            .points
            .iter()
            .map(|point| format!("{:.1} {:.1}", x(point.parameter), y(point.value)))
            .collect();
        let _ = writeln!(
            svg,
            "<path d=\"M{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.6\" stroke-dasharray=\"{dashes}\"/>",
            path.join("L")
        );
        for point in line.points {
            let _ = writeln!(
                svg,
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"2\" fill=\"{colour}\"><title>{}: {} at {}</title></circle>",
                x(point.parameter),
                y(point.value),
                escape(line.name),
                point.value,
                point.parameter
            );
        }
        let row = HEIGHT + 16.0 * index as f64 + 4.0;
        let _ = writeln!(
            svg,
            "<path d=\"M{LEFT} {row:.1}h28\" stroke=\"{colour}\" stroke-width=\"1.6\" stroke-dasharray=\"{dashes}\"/>\n\
             <text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            LEFT + 34.0,
            row + 4.0,
            escape(line.name)
        );
    }
    svg.push_str("</svg>\n");
    svg
}

/// A bar of a stacked chart.
pub(crate) struct Bar<'a> {
    pub name: &'a str,
    /// The value of each part.
    pub parts: Vec<f64>,
}

/// Distinguishable in greys, too: neighbours differ in lightness.
const PARTS: [&str; 12] = [
    "#1b3a5c", "#6f9fd0", "#2f6b4f", "#a8d3ae", "#7c3f1d", "#e0a96d", "#4d2f6b", "#b79ad0", "#7a6a10",
    "#e3d57a", "#555555", "#c4c4c4",
];

/// Black on white also on a page whose background is dark.
pub(crate) const BACKGROUND: &str = "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n";

/// Horizontal bars of the same length, each stacked of the shares of its parts, with their sums in
/// `unit`; below them what the parts are called.
pub(crate) fn stacked(bars: &[Bar<'_>], parts: &[&str], unit: &str) -> String {
    const BAR: f64 = 30.0;
    const NAMES: f64 = 170.0;
    const SUMS: f64 = 120.0;
    let width = WIDTH + NAMES;
    let scale = width - NAMES - SUMS;
    let legend = BAR * bars.len() as f64 + 18.0;
    let colour = |index: usize| PARTS[index % PARTS.len()];
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {}\" role=\"img\" font-family=\"sans-serif\" \
         font-size=\"12\">\n{BACKGROUND}",
        legend + 18.0 * parts.len() as f64
    );
    for (row, bar) in bars.iter().enumerate() {
        let (top, total) = (BAR * row as f64, bar.parts.iter().sum::<f64>().max(1.0));
        let middle = top + 19.0;
        // Writing to a string cannot fail.
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{middle:.1}\" text-anchor=\"end\">{}</text>",
            NAMES - 8.0,
            escape(bar.name)
        );
        let mut left = NAMES;
        for (index, value) in bar.parts.iter().enumerate() {
            let length = value / total * scale;
            let _ = writeln!(
                svg,
                "<rect x=\"{left:.1}\" y=\"{:.1}\" width=\"{length:.1}\" height=\"{:.1}\" fill=\"{}\"><title>{}: {value}</title></rect>",
                top + 4.0,
                BAR - 8.0,
                colour(index),
                escape(parts.get(index).unwrap_or(&"?"))
            );
            left += length;
        }
        let _ = writeln!(svg, "<text x=\"{:.1}\" y=\"{middle:.1}\">{total:.0} {unit}</text>", left + 8.0);
    }
    for (index, part) in parts.iter().enumerate() {
        let top = legend + 18.0 * index as f64;
        let _ = writeln!(
            svg,
            "<rect x=\"{NAMES}\" y=\"{:.1}\" width=\"12\" height=\"12\" fill=\"{}\"/>\n<text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            top - 10.0,
            colour(index),
            NAMES + 20.0,
            top,
            escape(part)
        );
    }
    svg.push_str("</svg>\n");
    svg
}

/// The first multiple of a round step above `value`, and the step: 5 to 10 of them.
fn step_above(value: f64) -> (f64, f64) {
    let magnitude = 10f64.powf((value / 5.0).log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * magnitude)
        .find(|step| value / step <= 10.0)
        .unwrap_or(10.0 * magnitude);
    ((value / step).ceil() * step, step)
}

/// Text for HTML and SVG.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_at_round_numbers() {
        assert_eq!(step_above(60.0), (60.0, 10.0));
        assert_eq!(step_above(907.0), (1000.0, 100.0));
        assert_eq!(step_above(1.0), (1.0, 0.1));
    }

    #[test]
    fn every_point_and_name_is_in_the_chart() {
        let points = [Point { parameter: 0.0, value: 10.0 }, Point { parameter: 8.0, value: 20.0 }];
        let svg = svg(&[Line { name: "a<b", points: &points }], "words", "instructions");
        assert_eq!(svg.matches("<circle").count(), 2);
        assert!(svg.contains("a&lt;b") && svg.ends_with("</svg>\n"));
    }
}

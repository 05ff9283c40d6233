//! Charts as SVG, drawn with crate `plotters`. Each is black on a white background, so that dark
//! pages can show it, and its columns are as wide as their text.

use crate::bench::Point;
use anyhow::Result;
use plotters::coord::Shift;
use plotters::coord::ranged1d::ValueFormatter;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// The size of letters in plotters' unit: 12 pixels.
const LETTERS: i32 = 15;
/// The height of a line of a legend, in pixels.
pub(crate) const LINE: i32 = 18;
const MARGIN: i32 = 12;
/// Colours that can also be distinguished in greys, because neighbours differ in lightness.
const COLOURS: [RGBColor; 12] = [
    RGBColor(0x1b, 0x3a, 0x5c),
    RGBColor(0x6f, 0x9f, 0xd0),
    RGBColor(0x2f, 0x6b, 0x4f),
    RGBColor(0xa8, 0xd3, 0xae),
    RGBColor(0x7c, 0x3f, 0x1d),
    RGBColor(0xe0, 0xa9, 0x6d),
    RGBColor(0x4d, 0x2f, 0x6b),
    RGBColor(0xb7, 0x9a, 0xd0),
    RGBColor(0x7a, 0x6a, 0x10),
    RGBColor(0xe3, 0xd5, 0x7a),
    RGBColor(0x55, 0x55, 0x55),
    RGBColor(0xc4, 0xc4, 0xc4),
];
/// Lengths and gaps of dashes, by which lines differ without colours, too.
const DASHES: [(u32, u32); 4] = [(12, 0), (6, 4), (2, 4), (12, 4)];

/// An area of a picture, in pixels.
pub(crate) struct Area<'a>(DrawingArea<SVGBackend<'a>, Shift>);

/// Makes a picture of this size.
pub(crate) fn draw(width: i32, height: i32, content: impl FnOnce(&Area<'_>) -> Result<()>) -> Result<String> {
    let mut svg = String::new();
    {
        let size = (width.unsigned_abs(), height.unsigned_abs());
        let area = Area(SVGBackend::with_string(&mut svg, size).into_drawing_area());
        area.0.fill(&WHITE)?;
        content(&area)?;
        area.0.present()?;
    }
    Ok(svg)
}

impl Area<'_> {
    /// Draws a line of text whose middle has this height; `side` says which end of the text is at
    /// `x`.
    pub(crate) fn text(&self, x: i32, y: i32, side: HPos, ink: RGBColor, text: &str) -> Result<()> {
        let style = ("sans-serif", LETTERS).into_text_style(&self.0).color(&ink);
        let style = style.pos(Pos::new(side, VPos::Center));
        Ok(self.0.draw(&Text::new(text, (x, y), style))?)
    }

    /// Draws a filled rectangle, at least one pixel wide.
    pub(crate) fn block(&self, (x, y): (i32, i32), width: i32, height: i32, colour: RGBColor) -> Result<()> {
        let corners = [(x, y), (x + width.max(1), y + height)];
        Ok(self.0.draw(&Rectangle::new(corners, colour.filled()))?)
    }

    /// Draws a straight line.
    pub(crate) fn line(&self, from: (i32, i32), to: (i32, i32), colour: RGBColor) -> Result<()> {
        Ok(self.0.draw(&PathElement::new(vec![from, to], colour))?)
    }

    /// Draws a legend: a line for each colour.
    fn legend<'a>(&self, x: i32, y: i32, names: impl Iterator<Item = &'a str>) -> Result<()> {
        for ((name, index), line) in names.zip(0..).zip(0..) {
            let y = y + LINE * line;
            self.block((x, y - 6), 12, 12, colour(index))?;
            self.text(x + 20, y, HPos::Left, BLACK, name)?;
        }
        Ok(())
    }
}

/// The colour of the part or line with this index.
pub(crate) fn colour(index: usize) -> RGBColor {
    COLOURS[index % COLOURS.len()]
}

/// An upper bound of the width of the widest of these texts, in pixels.
pub(crate) fn width<'a>(texts: impl Iterator<Item = &'a str>) -> i32 {
    let letters = texts.map(|text| text.chars().count()).max().unwrap_or(0);
    i32::try_from(letters).unwrap_or(i32::MAX / 16) * 7
}

/// A line of a chart.
pub(crate) struct Line<'a> {
    pub(crate) name: &'a str,
    pub(crate) points: &'a [Point],
}

/// The scale of a chart's axes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Axes {
    /// Linear, from 0.
    #[default]
    Linear,
    /// Logarithmic, for parameters that grow by factors, where the bend of a line matters. Points
    /// at 0 are left out.
    Logarithmic,
}

/// The height in pixels of the part of a chart that has the lines.
const HEIGHT: i32 = 340;

/// A chart of lines. The axes are called `across` and `up`; a legend names the lines.
pub(crate) fn lines(lines: &[Line<'_>], axes: Axes, across: &str, up: &str) -> Result<String> {
    let points = || lines.iter().flat_map(|line| line.points).filter(|point| axes.has(point));
    let end = |value: fn(&Point) -> f64| points().map(value).fold(1.0, f64::max);
    let start = |value: fn(&Point) -> f64| points().map(value).fold(f64::INFINITY, f64::min);
    let (right, top) = (end(|point| point.parameter), end(|point| point.value));
    let legend = LINE * i32::try_from(lines.len())? + MARGIN;
    draw(680, HEIGHT + legend, |area| {
        let (upper, _) = area.0.split_vertically(HEIGHT);
        let mut chart = ChartBuilder::on(&upper);
        let chart = chart.margin(MARGIN).x_label_area_size(44).y_label_area_size(76);
        match axes {
            Axes::Linear => {
                let chart = chart.build_cartesian_2d(0.0..right * 1.04, 0.0..top * 1.04)?;
                plot(chart, lines, axes, across, up)?;
            }
            Axes::Logarithmic => {
                let (left, bottom) = (start(|point| point.parameter), start(|point| point.value));
                // The axes extend to whole powers of ten, so that each has at least two labels.
                let whole = |low: f64, high: f64| {
                    let (low, high) = (low.min(high).log10().floor(), high.log10().ceil());
                    (10_f64.powf(low)..10_f64.powf(high.max(low + 1.0)) * 1.1).log_scale()
                };
                let chart = chart.build_cartesian_2d(whole(left, right), whole(bottom, top))?;
                plot(chart, lines, axes, across, up)?;
            }
        }
        area.legend(MARGIN + 76, HEIGHT + 6, lines.iter().map(|line| line.name))
    })
}

impl Axes {
    /// Whether a point lies within the axes.
    fn has(self, point: &Point) -> bool {
        self == Axes::Linear || point.parameter > 0.0 && point.value > 0.0
    }
}

/// Draws the grid, the labels of the axes, and the lines.
fn plot<'a, X, Y>(
    mut chart: ChartContext<'_, SVGBackend<'a>, Cartesian2d<X, Y>>,
    lines: &[Line<'_>],
    axes: Axes,
    across: &str,
    up: &str,
) -> Result<()>
where
    X: Ranged<ValueType = f64> + ValueFormatter<f64>,
    Y: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    let mut mesh = chart.configure_mesh();
    mesh.x_desc(across).y_desc(up).light_line_style(TRANSPARENT);
    mesh.x_label_formatter(&short).y_label_formatter(&short);
    mesh.label_style(("sans-serif", LETTERS)).draw()?;
    for (index, line) in lines.iter().enumerate() {
        let style = colour(index).stroke_width(2);
        let points = line.points.iter().filter(|point| axes.has(point));
        let points = points.map(|point| (point.parameter, point.value));
        let (length, gap) = DASHES[index % DASHES.len()];
        chart.draw_series(DashedLineSeries::new(points.clone(), length, gap, style))?;
        chart.draw_series(points.map(|point| Circle::new(point, 3, colour(index).filled())))?;
    }
    Ok(())
}

/// Formats a number for an axis, short enough for its space.
fn short(value: &f64) -> String {
    let (scale, unit) = match *value {
        1e9.. => (1e9, " G"),
        1e6.. => (1e6, " M"),
        1e4.. => (1e3, " k"),
        _ => (1.0, ""),
    };
    format!("{}{unit}", (value / scale * 1e3).round() / 1e3)
}

/// A row of a chart of bars: pieces that follow each other.
pub(crate) struct Row {
    pub(crate) name: String,
    /// The name of each lane.
    pub(crate) lanes: Vec<String>,
    /// The lane, part and length of each piece.
    pub(crate) pieces: Vec<(usize, usize, f64)>,
    /// The text for the sum of all pieces.
    pub(crate) sum: String,
}

/// A chart of rows. `longest` is the length of the longest row; a legend names the parts.
pub(crate) fn rows(rows: &[Row], parts: &[&str], longest: f64) -> Result<String> {
    const LENGTH: i32 = 520;
    const LANE: i32 = 20;
    const GAP: i32 = 12;
    let lane_names = rows.iter().flat_map(|row| &row.lanes).map(String::as_str);
    let names = MARGIN + width(rows.iter().map(|row| row.name.as_str()));
    let left = names + 8 + width(lane_names);
    let wide = left + LENGTH + 16 + width(rows.iter().map(|row| row.sum.as_str()));
    let height = |row: &Row| LANE * row.lanes.len() as i32 + GAP;
    let below = MARGIN + rows.iter().map(height).sum::<i32>();
    draw(wide.max(left + width(parts.iter().copied())), below + LINE * parts.len() as i32 + MARGIN, |area| {
        let mut top = MARGIN;
        for row in rows {
            let middle = top + (height(row) - GAP) / 2;
            area.text(names, middle, HPos::Right, BLACK, &row.name)?;
            for (lane, name) in (0..).zip(&row.lanes) {
                area.text(left - 4, top + LANE * lane + LANE / 2, HPos::Right, BLACK, name)?;
            }
            let mut at = 0.0;
            let place = |at: f64| left + (at / longest * f64::from(LENGTH)).round() as i32;
            for &(lane, part, length) in &row.pieces {
                let (y, wide) = (top + LANE * lane as i32 + 1, place(at + length) - place(at));
                area.block((place(at), y), wide, LANE - 2, colour(part))?;
                let label = format!("{length}");
                if row.lanes.len() > 1 && width([label.as_str()].into_iter()) + 4 < wide {
                    let (middle, ink) = (place(at) + wide / 2, ink_on(colour(part)));
                    area.text(middle, y + LANE / 2, HPos::Center, ink, &label)?;
                }
                at += length;
            }
            area.text(place(at) + 8, middle, HPos::Left, BLACK, &row.sum)?;
            top += height(row);
        }
        area.legend(left, below + LINE / 2, parts.iter().copied())
    })
}

/// Black or white, whichever is readable on this colour.
fn ink_on(RGBColor(red, green, blue): RGBColor) -> RGBColor {
    let light = 3 * u32::from(red) + 6 * u32::from(green) + u32::from(blue);
    if light > 1280 { BLACK } else { WHITE }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values of an attribute of all elements with this name.
    fn values(svg: &str, element: &str, attribute: &str) -> Vec<i32> {
        let elements = svg.split('<').filter(|rest| rest.starts_with(element));
        let value = |element: &str| {
            element.split_once(&format!(" {attribute}=\""))?.1.split('"').next()?.parse().ok()
        };
        elements.filter_map(value).collect()
    }

    #[test]
    fn every_point_and_name_is_in_the_chart() {
        let points = [Point { parameter: 0.0, value: 10.0 }, Point { parameter: 8.0, value: 20.0 }];
        let draw =
            |axes| lines(&[Line { name: "a<b", points: &points }], axes, "words", "instructions").unwrap();
        let svg = draw(Axes::Linear);
        assert_eq!(svg.matches("<circle").count(), 2);
        assert!(["a&lt;b", "words", "instructions"].iter().all(|text| svg.contains(text)), "{svg}");
        // A point at 0 cannot be drawn on a logarithmic axis.
        assert_eq!(draw(Axes::Logarithmic).matches("<circle").count(), 1);
    }

    #[test]
    fn on_logarithmic_axes_equal_factors_are_equal_distances() {
        let points = [1.0, 10.0, 100.0].map(|at| Point { parameter: at, value: 5.0 * at });
        let svg = lines(&[Line { name: "a", points: &points }], Axes::Logarithmic, "x", "y").unwrap();
        for attribute in ["cx", "cy"] {
            let at = values(&svg, "circle", attribute);
            assert!((at[2] - at[1]).abs_diff(at[1] - at[0]) <= 1, "{attribute} {at:?}");
        }
    }

    #[test]
    fn numbers_at_axes_are_short() {
        assert_eq!([0.5, 9000.0, 25_000.0, 1e9].map(|value| short(&value)), ["0.5", "9000", "25 k", "1 G"]);
    }

    #[test]
    fn nothing_of_a_row_is_outside_or_over_its_name() {
        let row = |name: &str, length: f64| Row {
            name: name.into(),
            lanes: vec!["0".into(), "1".into()],
            pieces: vec![(0, 0, length), (1, 1, 1.0)],
            sum: format!("{} instructions", length + 1.0),
        };
        let svg =
            rows(&[row("a long name of something", 900.0), row("b", 20.0)], &["one", "two"], 901.0).unwrap();
        let wide = values(&svg, "svg", "width")[0];
        let (starts, lengths) = (values(&svg, "rect", "x"), values(&svg, "rect", "width"));
        // The rectangles are the background, two pieces of each row, and the legend.
        assert_eq!(starts.len(), 1 + 4 + 2);
        assert!(starts.iter().zip(&lengths).all(|(start, length)| start + length <= wide));
        let names = width(["a long name of something"].into_iter());
        assert!(starts[1..].iter().all(|start| *start > names), "{svg}");
        assert!(svg.contains("901 instructions") && svg.contains("\n900\n"), "{svg}");
    }

    #[test]
    fn letters_are_readable_on_every_colour() {
        assert_eq!((ink_on(colour(0)), ink_on(colour(9))), (WHITE, BLACK));
    }
}

//! Draws a trace: a lane for each processor, all on one time line, with a line for each message
//! from one processor to another. Events have numbers, which a list below explains.

use crate::chart::{self, Area, LINE};
use ::trace::{Event, Record, Words};
use anyhow::Result;
use plotters::style::text_anchor::HPos;
use plotters::style::{BLACK, RED, RGBColor};
use std::collections::BTreeMap;

const WIDTH: i32 = 960;
const MARGIN: i32 = 12;
const LEFT: i32 = 112;
const LANE: i32 = 72;
/// Dimensions of a lane: the rows of numbers above the bar, and the bar.
const ROWS: usize = 3;
const ROW: i32 = 14;
const BAR: i32 = 18;

/// The colour of the time after an event, by the work that begins with the event.
fn colour(event: Event) -> RGBColor {
    chart::colour(match event {
        Event::Idle => 11,
        Event::Wake | Event::IpiReceive | Event::Interrupt | Event::Timer => 5,
        Event::Post | Event::IpiSend | Event::Serve | Event::Migrate | Event::ShootDown => 4,
        Event::IpcCall | Event::IpcWaitSend | Event::IpcTransfer | Event::IpcWaitReceive => 1,
        Event::IpcReturn | Event::IpcError | Event::Switch => 2,
        _ => 7,
    })
}

/// The events of a picture, the earliest first.
struct Lanes<'a> {
    records: &'a [Record],
    start: u64,
    length: u64,
    /// The vertical position of each processor's lane.
    places: BTreeMap<u16, i32>,
}

impl Lanes<'_> {
    fn x(&self, time: u64) -> i32 {
        let share = (time - self.start) as f64 / self.length as f64;
        LEFT + (share * f64::from(WIDTH - LEFT - MARGIN)).round() as i32
    }

    /// The top of a processor's bar.
    fn y(&self, processor: u16) -> i32 {
        MARGIN + self.places.get(&processor).map_or(0, |place| place * LANE) + ROWS as i32 * ROW
    }

    /// The next event of `processor` after `index` by which a message from another processor
    /// arrives.
    fn arrival(&self, index: usize, processor: u16) -> Option<&Record> {
        self.records[index + 1..].iter().find(|later| {
            let event = Event::from_number(later.event);
            later.processor == processor
                && matches!(event, Some(Event::Wake | Event::IpiReceive | Event::Serve | Event::Switch))
        })
    }
}

/// Draws a picture of `records`, which must be sorted by time.
pub(super) fn svg(records: &[Record]) -> Result<String> {
    let start = records.first().map_or(0, |record| record.time);
    let end = records.last().map_or(0, |record| record.time);
    let mut places: BTreeMap<u16, i32> = records.iter().map(|record| (record.processor, 0)).collect();
    places.values_mut().zip(0..).for_each(|(place, index)| *place = index);
    // The time line is longer than the events, so that the time after the last event is visible.
    let length = (end - start).max(20) * 21 / 20;
    let lanes = Lanes { records, start, length, places };
    let below = MARGIN + LANE * i32::try_from(lanes.places.len())? + LINE;
    let height = below + LINE * (i32::try_from(records.len())? + 1) + MARGIN;
    chart::draw(WIDTH, height, |area| {
        for processor in lanes.places.keys() {
            bars(area, &lanes, *processor)?;
        }
        for (index, record) in records.iter().enumerate() {
            let sends = matches!(Event::from_number(record.event), Some(Event::Post | Event::IpiSend));
            let to = u16::try_from(record.a).ok().filter(|to| sends && lanes.places.contains_key(to));
            if let Some(arrival) = to.and_then(|to| lanes.arrival(index, to)) {
                let down = lanes.y(arrival.processor) > lanes.y(record.processor);
                let edge = |record: &Record, lower| {
                    (lanes.x(record.time), lanes.y(record.processor) + if lower { BAR } else { 0 })
                };
                area.line(edge(record, down), edge(arrival, !down), RED)?;
            }
        }
        area.text(LEFT, below - LINE / 2, HPos::Left, BLACK, "0")?;
        area.text(WIDTH - MARGIN, below - LINE / 2, HPos::Right, BLACK, &format!("{length} ticks"))?;
        list(area, records, start, below + LINE)
    })
}

/// Draws the lane of one processor.
fn bars(area: &Area<'_>, lanes: &Lanes<'_>, processor: u16) -> Result<()> {
    let top = lanes.y(processor);
    area.text(MARGIN, top + BAR / 2, HPos::Left, BLACK, &format!("processor {processor}"))?;
    let own: Vec<(usize, &Record)> =
        lanes.records.iter().enumerate().filter(|(_, record)| record.processor == processor).collect();
    // For each row, the right end of its last number.
    let mut ends = [i32::MIN; ROWS];
    for (place, (index, record)) in own.iter().enumerate() {
        let Some(event) = Event::from_number(record.event) else { continue };
        let left = lanes.x(record.time);
        let end = own.get(place + 1).map_or(lanes.start + lanes.length, |(_, next)| next.time);
        // Each bar is a pixel shorter than its time, so that the beginning of the next bar can be
        // seen.
        area.block((left, top), lanes.x(end) - left - 1, BAR, colour(event))?;
        let row = (0..ROWS).find(|row| ends[*row] < left).unwrap_or(0);
        ends[row] = left + 24;
        let middle = top - ROW / 2 - ROW * row as i32;
        area.text(left, middle, HPos::Left, BLACK, &(index + 1).to_string())?;
    }
    Ok(())
}

/// Draws the list that explains the numbers.
fn list(area: &Area<'_>, records: &[Record], start: u64, top: i32) -> Result<()> {
    for ((number, record), line) in (1..).zip(records).zip(0..) {
        let Some(event) = Event::from_number(record.event) else { continue };
        let (time, processor, words) = (record.time - start, record.processor, Words(record));
        let y = top + LINE * line;
        area.block((MARGIN, y - 5), 10, 10, colour(event))?;
        let text = format!("{number}: {time} on {processor}, {} {words}", event.name());
        area.text(MARGIN + 16, y, HPos::Left, BLACK, &text)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(time: u64, processor: u16, event: Event, a: u64) -> Record {
        Record { time, processor, thread: 0x3a, event: event as u8, a, ..Record::EMPTY }
    }

    /// Every event has its number, its bar and its line; an event that wakes a thread is joined to
    /// the waking.
    #[test]
    fn events_and_what_is_sent_are_shown() {
        let records = [
            record(1000, 1, Event::Idle, 0),
            record(1100, 0, Event::IpcCall, 0x10),
            record(1200, 0, Event::Post, 1),
            record(1300, 1, Event::Wake, 33),
            record(1400, 1, Event::IpcTransfer, 0x20),
        ];
        let picture = svg(&records).unwrap();
        // The rectangles are the background and, for each event, a bar and a line of the list.
        assert_eq!(picture.matches("<rect").count(), 1 + 5 + 5);
        assert_eq!(picture.matches("<polyline").count(), 1);
        for text in ["processor 0", "processor 1", "420 ticks", "4: 300 on 1, wake", "3: 200 on 0, post"] {
            assert!(picture.contains(text), "{text} in {picture}");
        }
        // The call begins at a quarter of the time line, the wait of the other processor at its
        // left end.
        assert!(
            picture.contains(&format!("<rect x=\"{LEFT}\" y=\"{}\"", MARGIN + LANE + ROWS as i32 * ROW)),
            "{picture}"
        );
    }

    #[test]
    fn no_events_make_an_empty_picture() {
        assert!(svg(&[]).unwrap().trim_end().ends_with("</svg>"));
    }
}

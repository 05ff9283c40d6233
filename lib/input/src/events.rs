//! The driver's end of the memory that it shares with its client.

use crate::area::{Area, RING};
use crate::event::{Event, SIZE};
use core::sync::atomic::Ordering;
use ring::Writer;

/// The driver's end.
#[derive(Debug)]
pub struct Events<'a> {
    area: &'a Area,
    ring: Writer<'a, RING>,
    /// Whether events were lost and the client was not told.
    lost: bool,
    /// The lights that the client wanted on when the driver last looked.
    lights: u32,
}

impl<'a> Events<'a> {
    /// The driver's end of an area that was not used before.
    pub fn new(area: &'a Area) -> Events<'a> {
        Events { area, ring: Writer::new(&area.events), lost: false, lights: 0 }
    }

    /// Writes an event. If there is no room, the event is lost, and the client is told when there
    /// is room again. Never blocks. The driver must notify the client afterwards.
    pub fn write(&mut self, event: Event) {
        self.report_loss();
        if self.lost || self.ring.room() < SIZE {
            self.lost = true;
            self.ring.wait_for_reader();
            // The client may have read in the meantime: then it has not seen that the driver waits.
            self.report_loss();
        } else {
            self.ring.write(&event.bytes());
        }
    }

    /// Tells the client that events were lost, if some were and there is room to say it. The driver
    /// calls this when the client has notified it. Returns whether it has written something.
    pub fn report_loss(&mut self) -> bool {
        let can_report = self.lost && self.ring.room() >= SIZE;
        if can_report {
            self.ring.write(&Event::LOST.bytes());
            self.lost = false;
        }
        can_report
    }

    /// The lights that the client wants on, if they are others than when this function was last
    /// called. At first no light is on.
    pub fn changed_lights(&mut self) -> Option<u32> {
        let wanted = self.area.lights.load(Ordering::Relaxed);
        let has_changed = wanted != self.lights;
        self.lights = wanted;
        has_changed.then_some(wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::next;
    use ring::Reader;

    #[test]
    fn events_come_in_order() {
        let area = Area::default();
        let (mut driver, mut reader) = (Events::new(&area), Reader::new(&area.events));
        for code in 0..5000 {
            driver.write(Event::key(code, 1));
            driver.write(Event::key(code, 0));
            assert_eq!(next(&mut reader), Some(Event::key(code, 1)));
            assert_eq!(next(&mut reader), Some(Event::key(code, 0)));
            assert_eq!(next(&mut reader), None);
        }
    }

    #[test]
    fn the_client_is_told_of_lost_events_at_their_place() {
        let area = Area::default();
        let (mut driver, mut reader) = (Events::new(&area), Reader::new(&area.events));
        let room = (RING / SIZE) as u16;
        (0..room + 3).for_each(|code| driver.write(Event::key(code, 1)));
        assert!(!driver.report_loss(), "there is no room to say it");
        (0..room).for_each(|code| assert_eq!(next(&mut reader), Some(Event::key(code, 1))));
        assert_eq!(next(&mut reader), None);
        assert!(reader.take_waiting(), "the driver wants to be notified");
        assert!(driver.report_loss() && !driver.report_loss());
        driver.write(Event::key(7, 1));
        assert_eq!([next(&mut reader), next(&mut reader)], [Some(Event::LOST), Some(Event::key(7, 1))]);
    }

    #[test]
    fn a_loss_is_reported_before_later_events_even_without_a_notification() {
        let area = Area::default();
        let (mut driver, mut reader) = (Events::new(&area), Reader::new(&area.events));
        (0..300).for_each(|code| driver.write(Event::key(code, 1)));
        while next(&mut reader).is_some() {}
        driver.write(Event::key(9, 0));
        assert_eq!([next(&mut reader), next(&mut reader)], [Some(Event::LOST), Some(Event::key(9, 0))]);
    }

    #[test]
    fn half_an_event_is_none() {
        let area = Area::default();
        let (mut driver, mut reader) = (Events::new(&area), Reader::new(&area.events));
        driver.ring.write(&[1, 0, 30]);
        assert_eq!(next(&mut reader), None);
        driver.ring.write(&[0, 1, 0, 0, 0]);
        assert_eq!(next(&mut reader), Some(Event::key(30, 1)));
    }

    #[test]
    fn lights_are_seen_once() {
        let area = Area::default();
        let mut driver = Events::new(&area);
        assert_eq!(driver.changed_lights(), None);
        area.lights.store(5, Ordering::Relaxed);
        assert_eq!([driver.changed_lights(), driver.changed_lights()], [Some(5), None]);
    }
}

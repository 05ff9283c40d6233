//! Segments: what arrives, as numbers, and headers of what is sent.

use smoltcp::wire::{TcpOption, TcpPacket};

use super::sequence::Seq;

/// The bits of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags {
    pub(crate) fin: bool,
    pub(crate) syn: bool,
    pub(crate) rst: bool,
    pub(crate) psh: bool,
    pub(crate) urg: bool,
}

/// A segment that arrived, or the header of one that is sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Segment<'a> {
    pub(crate) source_port: u16,
    pub(crate) destination_port: u16,
    pub(crate) seq: Seq,
    pub(crate) ack: Option<Seq>,
    pub(crate) flags: Flags,
    /// As it is in the header, not scaled.
    pub(crate) window: u16,
    pub(crate) urgent: u16,
    pub(crate) mss: Option<u16>,
    pub(crate) scale: Option<u8>,
    pub(crate) sack_permitted: bool,
    pub(crate) sack: [Option<(u32, u32)>; 3],
    /// The time stamp and its echo.
    pub(crate) stamp: Option<(u32, u32)>,
    pub(crate) payload: &'a [u8],
}

/// The largest header.
pub(crate) const LARGEST: usize = 60;

impl<'a> Segment<'a> {
    /// Reads a segment; nothing if it is malformed.
    pub(crate) fn parse(bytes: &'a [u8]) -> Option<Segment<'a>> {
        let packet = TcpPacket::new_checked(bytes).ok()?;
        if packet.src_port() == 0 || packet.dst_port() == 0 {
            return None;
        }
        let mut segment = Segment {
            source_port: packet.src_port(),
            destination_port: packet.dst_port(),
            seq: Seq(packet.seq_number().0 as u32),
            ack: packet.ack().then(|| Seq(packet.ack_number().0 as u32)),
            flags: Flags {
                fin: packet.fin(),
                syn: packet.syn(),
                rst: packet.rst(),
                psh: packet.psh(),
                urg: packet.urg(),
            },
            window: packet.window_len(),
            urgent: packet.urgent_at(),
            payload: packet.payload(),
            ..Segment::default()
        };
        let mut options = packet.options();
        while !options.is_empty() {
            let (rest, option) = TcpOption::parse(options).ok()?;
            match option {
                TcpOption::EndOfList => break,
                TcpOption::MaxSegmentSize(size) => segment.mss = Some(size),
                TcpOption::WindowScale(scale) => segment.scale = Some(scale.min(14)),
                TcpOption::SackPermitted => segment.sack_permitted = true,
                TcpOption::SackRange(ranges) => segment.sack = ranges,
                TcpOption::TimeStamp { tsval, tsecr } => segment.stamp = Some((tsval, tsecr)),
                TcpOption::NoOperation | TcpOption::Unknown { .. } => {}
            }
            options = rest;
        }
        Some(segment)
    }

    /// Sequence numbers that it takes.
    pub(crate) fn length(&self) -> usize {
        self.payload.len() + usize::from(self.flags.syn) + usize::from(self.flags.fin)
    }

    /// Writes the header without its checksum, and answers its length.
    pub(crate) fn write(&self, header: &mut [u8; LARGEST]) -> usize {
        header[0..2].copy_from_slice(&self.source_port.to_be_bytes());
        header[2..4].copy_from_slice(&self.destination_port.to_be_bytes());
        header[4..8].copy_from_slice(&self.seq.0.to_be_bytes());
        header[8..12].copy_from_slice(&self.ack.unwrap_or_default().0.to_be_bytes());
        header[13] = u8::from(self.flags.fin)
            | u8::from(self.flags.syn) << 1
            | u8::from(self.flags.rst) << 2
            | u8::from(self.flags.psh) << 3
            | u8::from(self.ack.is_some()) << 4
            | u8::from(self.flags.urg) << 5;
        header[14..16].copy_from_slice(&self.window.to_be_bytes());
        header[18..20].copy_from_slice(&self.urgent.to_be_bytes());
        let mut at = 20;
        let mut put = |bytes: &[u8]| {
            header[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        if let Some(mss) = self.mss {
            put(&[2, 4]);
            put(&mss.to_be_bytes());
        }
        if self.sack_permitted {
            put(&[1, 1, 4, 2]);
        }
        if let Some((stamp, echo)) = self.stamp {
            put(&[1, 1, 8, 10]);
            put(&stamp.to_be_bytes());
            put(&echo.to_be_bytes());
        }
        if let Some(scale) = self.scale {
            put(&[1, 3, 3, scale]);
        }
        let ranges = self.sack.iter().flatten().count();
        if ranges > 0 {
            put(&[1, 1, 5, 2 + 8 * ranges as u8]);
            for (start, end) in self.sack.iter().flatten() {
                put(&start.to_be_bytes());
                put(&end.to_be_bytes());
            }
        }
        header[12] = (at as u8 / 4) << 4;
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let segment = Segment {
            source_port: 80,
            destination_port: 4000,
            seq: Seq(7),
            ack: Some(Seq(9)),
            flags: Flags { syn: true, urg: true, ..Flags::default() },
            window: 1000,
            urgent: 3,
            mss: Some(1460),
            scale: Some(7),
            sack_permitted: true,
            stamp: Some((1, 2)),
            ..Segment::default()
        };
        let mut header = [0; LARGEST];
        let length = segment.write(&mut header);
        let read = Segment::parse(&header[..length]).unwrap();
        assert_eq!(format!("{read:?}"), format!("{segment:?}"));
        let ranges = [Some((1, 5)), Some((9, 12)), Some((20, 40))];
        let segment = Segment {
            flags: Flags::default(),
            mss: None,
            scale: None,
            sack_permitted: false,
            sack: ranges,
            ..segment
        };
        let mut header = [0; LARGEST];
        let length = segment.write(&mut header);
        let read = Segment::parse(&header[..length]).unwrap();
        assert_eq!((read.sack, read.length()), (ranges, 0));
    }
}

//! A cable between two emulated machines: QEMU's frames pass through this process, which may lose
//! some of them, double them, let others overtake them, or change a bit.
//!
//! What becomes of a frame depends on the seed, on the machine that sent it, and on how many frames
//! that machine has sent before; not on time. Only how long a frame is held that others are to
//! overtake depends on time as well: without other frames it is passed on after [`LONGEST_HOLD`].

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What a cable does to frames: of a hundred, how many it treats so. A frame may be treated in
/// several ways.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Cable {
    /// The frames that never arrive.
    loses: u64,
    /// Those that arrive twice.
    doubles: u64,
    /// Those that arrive after later ones.
    delays: u64,
    /// Those of which one bit changes, after the header of Ethernet. A packet of IP has a checksum
    /// over nearly all of these bits. A frame without IP has none, and is lost instead: real cards
    /// drop it because of Ethernet's own checksum.
    corrupts: u64,
    /// Makes other choices of frames.
    seed: u64,
}

/// The highest share of each kind.
const MOST: u64 = 50;
/// So many frames overtake one at most.
const OVERTAKING: u64 = 4;
/// A frame is held so long at most, for others to overtake it.
const LONGEST_HOLD: Duration = Duration::from_millis(20);
/// The longest frame that QEMU passes on.
const LONGEST: usize = 4096 + 65536;
/// How long QEMU may take to connect.
const PATIENCE: Duration = Duration::from_secs(10);
/// The length of an Ethernet header, the place of its type, and the types of IP.
const ETHERNET: usize = 14;
const TYPE: std::ops::Range<usize> = 12..14;
const IP: [[u8; 2]; 2] = [[0x08, 0x00], [0x86, 0xdd]];

impl Cable {
    /// Refuses shares that leave too little, and a seed for nothing.
    ///
    /// # Errors
    /// They do.
    pub(crate) fn check(&self) -> Result<()> {
        let shares = [self.loses, self.doubles, self.delays, self.corrupts];
        if shares.iter().any(|&share| share > MOST) {
            bail!("a `cable` has at most {MOST} of a hundred frames of a kind");
        }
        if self.seed != 0 && shares == [0; 4] {
            bail!("a `cable` that treats all frames well has no `seed`");
        }
        Ok(())
    }

    /// What becomes of the frame of this number from one of the machines.
    fn fate(&self, machine: u64, number: u64) -> Fate {
        let mut random = Random(mix(mix(self.seed).wrapping_add(machine)).wrapping_add(number));
        let mut is_chosen = |share: u64| random.next() % 100 < share;
        let [is_lost, is_doubled, is_late, is_corrupted] =
            [self.loses, self.doubles, self.delays, self.corrupts].map(&mut is_chosen);
        let overtaken_by = if is_late { 1 + random.next() % OVERTAKING } else { 0 };
        let bit = is_corrupted.then(|| random.next());
        Fate { is_lost, is_doubled, overtaken_by, bit }
    }
}

/// What becomes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fate {
    is_lost: bool,
    is_doubled: bool,
    /// How many later frames overtake it.
    overtaken_by: u64,
    /// The number of the bit that changes, modulo how many there are.
    bit: Option<u64>,
}

/// Numbers that look random (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }
}

fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// How many frames of a machine were treated in each way.
#[derive(Debug, Default)]
struct Counts {
    all: AtomicU64,
    lost: AtomicU64,
    doubled: AtomicU64,
    delayed: AtomicU64,
    corrupted: AtomicU64,
}

fn count(counter: &AtomicU64) {
    // Relaxed ordering: each counter is read by itself.
    counter.fetch_add(1, Ordering::Relaxed);
}

/// A cable whose ends are emulators that connect to its port.
#[derive(Debug)]
pub struct Hub {
    cable: Cable,
    listener: TcpListener,
    /// The port of 127.0.0.1 to which both machines connect.
    pub port: u16,
    first: Option<TcpStream>,
    counts: [Arc<Counts>; 2],
}

impl Hub {
    /// A cable without machines.
    ///
    /// # Errors
    /// The host has no port for it.
    pub fn new(cable: Cable) -> Result<Hub> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("making a cable")?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        Ok(Hub { cable, listener, port, first: None, counts: Default::default() })
    }

    /// Takes the connection of the machine that has just been started. Frames pass when there are
    /// two, until one of the machines ends.
    ///
    /// # Errors
    /// The machine has not connected.
    pub fn plug(&mut self) -> Result<()> {
        let begun = Instant::now();
        let stream = loop {
            match self.listener.accept() {
                Ok((stream, _)) => break stream,
                Err(error) if error.kind() == ErrorKind::WouldBlock && begun.elapsed() < PATIENCE => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(error) => return Err(error).context("the machine does not connect to its cable"),
            }
        };
        stream.set_nonblocking(false)?;
        stream.set_nodelay(true)?;
        let Some(first) = self.first.take() else {
            self.first = Some(stream);
            return Ok(());
        };
        let ways = [(first.try_clone()?, stream.try_clone()?), (stream, first)];
        for ((machine, counts), (from, to)) in (0..).zip(&self.counts).zip(ways) {
            from.set_read_timeout(Some(LONGEST_HOLD))?;
            let mut way = Way::new(self.cable, machine, counts.clone(), to);
            // The end of a machine ends the connection, and with it the thread.
            std::thread::spawn(move || way.pass(Frames { stream: from, bytes: Vec::new() }));
        }
        Ok(())
    }

    /// What has become of the frames, in words.
    pub fn report(&self) -> String {
        let mut report = format!("seed {}\n", self.cable.seed);
        for (machine, counts) in ["first", "second"].iter().zip(&self.counts) {
            let [all, lost, doubled, delayed, corrupted] = counts.read();
            report += &format!(
                "{all} frames of the {machine} machine: {lost} lost, {doubled} doubled, {delayed} delayed, \
                 {corrupted} corrupted\n"
            );
        }
        report
    }

    /// An error unless the cable has treated frames of both machines in each way that it should.
    ///
    /// # Errors
    /// It has not: then it has tested nothing.
    pub fn check_used(&self) -> Result<()> {
        let Cable { loses, doubles, delays, corrupts, .. } = self.cable;
        for counts in &self.counts {
            let wanted = [1, loses, doubles, delays, corrupts];
            if counts.read().iter().zip(wanted).any(|(&count, wanted)| wanted > 0 && count == 0) {
                bail!("the cable had too few frames to treat them as it should: {}", self.report());
            }
        }
        Ok(())
    }
}

impl Counts {
    fn read(&self) -> [u64; 5] {
        [&self.all, &self.lost, &self.doubled, &self.delayed, &self.corrupted]
            .map(|counter| counter.load(Ordering::Relaxed))
    }
}

/// The frames that come from a machine, each after its length in four bytes.
struct Frames {
    stream: TcpStream,
    /// What has come of the next ones.
    bytes: Vec<u8>,
}

impl Frames {
    /// The next frame; `None`: none comes for some time.
    fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            if let Some((length, rest)) = self.bytes.split_first_chunk() {
                let length = u32::from_be_bytes(*length) as usize;
                if length > LONGEST {
                    return Err(ErrorKind::InvalidData.into());
                }
                if rest.len() >= length {
                    let frame = rest[..length].to_vec();
                    self.bytes.drain(..4 + length);
                    return Ok(Some(frame));
                }
            }
            let mut part = [0; 1 << 14];
            match self.stream.read(&mut part) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(length) => self.bytes.extend_from_slice(&part[..length]),
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    return Ok(None);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// The way from one machine to the other.
struct Way<T> {
    cable: Cable,
    machine: u64,
    counts: Arc<Counts>,
    to: T,
    /// How many frames have come.
    number: u64,
    /// Frames that are held, each with how many are still to overtake it.
    held: VecDeque<(u64, Vec<u8>)>,
}

impl<T: Write> Way<T> {
    fn new(cable: Cable, machine: u64, counts: Arc<Counts>, to: T) -> Way<T> {
        Way { cable, machine, counts, to, number: 0, held: VecDeque::new() }
    }

    /// Passes frames on until a machine ends.
    fn pass(&mut self, mut frames: Frames) -> io::Result<()> {
        loop {
            match frames.next()? {
                Some(frame) => self.frame(frame)?,
                None => self.release(true)?,
            }
        }
    }

    /// Treats a frame.
    fn frame(&mut self, mut frame: Vec<u8>) -> io::Result<()> {
        let fate = self.cable.fate(self.machine, self.number);
        self.number += 1;
        count(&self.counts.all);
        let has_checksum = frame.get(TYPE).is_some_and(|kind| IP.iter().any(|ip| kind == ip));
        if fate.is_lost || fate.bit.is_some() && !has_checksum {
            count(&self.counts.lost);
            return self.release(false);
        }
        if let Some(bit) = fate.bit.filter(|_| frame.len() > ETHERNET) {
            count(&self.counts.corrupted);
            let bit = bit as usize % (8 * (frame.len() - ETHERNET));
            frame[ETHERNET + bit / 8] ^= 1 << (bit % 8);
        }
        if fate.is_doubled {
            count(&self.counts.doubled);
        }
        if fate.overtaken_by > 0 {
            count(&self.counts.delayed);
            self.release(false)?;
            let copies = if fate.is_doubled { 2 } else { 1 };
            self.held.extend(std::iter::repeat_n((fate.overtaken_by, frame), copies));
            return Ok(());
        }
        for _ in 0..if fate.is_doubled { 2 } else { 1 } {
            self.write(&frame)?;
        }
        self.release(false)
    }

    /// Passes the frames on that enough others have overtaken, or all.
    fn release(&mut self, all: bool) -> io::Result<()> {
        for _ in 0..self.held.len() {
            let Some((left, frame)) = self.held.pop_front() else { break };
            match left {
                2.. if !all => self.held.push_back((left - 1, frame)),
                _ => self.write(&frame)?,
            }
        }
        Ok(())
    }

    fn write(&mut self, frame: &[u8]) -> io::Result<()> {
        let length = (frame.len() as u32).to_be_bytes();
        self.to.write_all(&[&length[..], frame].concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BAD: Cable = Cable { loses: 10, doubles: 10, delays: 10, corrupts: 10, seed: 5 };

    /// A frame of IPv4 with this number in it.
    fn frame(number: u32) -> Vec<u8> {
        let mut frame = vec![0; 60];
        frame[TYPE].copy_from_slice(&IP[0]);
        frame[56..].copy_from_slice(&number.to_be_bytes());
        frame
    }

    /// The frames in what was written.
    fn frames(mut written: &[u8]) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        while let Some((length, rest)) = written.split_first_chunk() {
            let (frame, rest) = rest.split_at(u32::from_be_bytes(*length) as usize);
            frames.push(frame.to_vec());
            written = rest;
        }
        frames
    }

    /// What arrives of so many frames, and what the counters say.
    fn sent(cable: Cable, machine: u64, count: u32) -> (Vec<Vec<u8>>, [u64; 5]) {
        let mut way = Way::new(cable, machine, Arc::default(), Vec::new());
        for number in 0..count {
            way.frame(frame(number)).unwrap();
        }
        way.release(true).unwrap();
        (frames(&way.to), way.counts.read())
    }

    #[test]
    fn a_good_cable_passes_each_frame_once_and_in_order() {
        let (arrived, counts) = sent(Cable::default(), 0, 100);
        assert_eq!(arrived, (0..100).map(frame).collect::<Vec<_>>());
        assert_eq!(counts, [100, 0, 0, 0, 0]);
    }

    #[test]
    fn a_bad_cable_treats_as_many_frames_as_it_should() {
        let (arrived, [all, lost, doubled, delayed, corrupted]) = sent(BAD, 0, 10_000);
        assert_eq!(all, 10_000);
        // Frames that are lost are not treated in other ways.
        for (count, share) in [(lost, 1000), (doubled, 900), (delayed, 900), (corrupted, 900)] {
            assert!((share - 150..share + 150).contains(&count), "{count} for {share}");
        }
        assert_eq!(arrived.len() as u64, all - lost + doubled);
        let changed = |bytes: &Vec<u8>| {
            let number = u32::from_be_bytes(bytes[56..].try_into().unwrap());
            let bits = bytes.iter().zip(frame(number)).map(|(byte, sent)| (byte ^ sent).count_ones());
            bits.sum::<u32>() > 0 || number >= 10_000
        };
        // A changed bit of the number makes another number. Both frames of a pair are the same.
        assert!(arrived.iter().filter(|bytes| changed(bytes)).count() as u64 >= corrupted * 8 / 10);
        assert!(arrived.iter().all(|bytes| bytes[..ETHERNET] == frame(0)[..ETHERNET]));
        let only = Cable { loses: 0, doubles: 0, corrupts: 0, ..BAD };
        let (late, [.., delayed, _]) = sent(only, 0, 10_000);
        let overtaken = late.windows(2).filter(|pair| pair[0] > pair[1]).count() as u64;
        assert!(overtaken * 10 > delayed * 7, "{overtaken} of {delayed}");
        let mut sorted = late.clone();
        sorted.sort();
        assert_eq!(sorted, (0..10_000).map(frame).collect::<Vec<_>>(), "each arrives");
    }

    #[test]
    fn the_seed_the_machine_and_the_number_decide() {
        assert_eq!(sent(BAD, 0, 1000), sent(BAD, 0, 1000));
        assert_ne!(sent(BAD, 0, 1000), sent(BAD, 1, 1000));
        assert_ne!(sent(BAD, 0, 1000), sent(Cable { seed: 6, ..BAD }, 0, 1000));
    }

    #[test]
    fn a_frame_without_a_checksum_is_lost_and_not_changed() {
        let mut way = Way::new(Cable { corrupts: 50, ..Cable::default() }, 0, Arc::default(), Vec::new());
        let arp = [&[1; 12][..], &[0x08, 0x06], &[7; 28]].concat();
        for _ in 0..1000 {
            way.frame(arp.clone()).unwrap();
        }
        let [_, lost, .., corrupted] = way.counts.read();
        assert!(frames(&way.to).iter().all(|frame| *frame == arp) && corrupted == 0 && lost > 400);
    }

    #[test]
    fn shares_that_make_no_sense_are_refused() {
        assert!(BAD.check().is_ok() && Cable::default().check().is_ok());
        assert!(Cable { delays: MOST + 1, ..BAD }.check().is_err());
        assert!(Cable { seed: 1, ..Cable::default() }.check().is_err());
    }

    #[test]
    fn two_machines_are_connected_both_ways() {
        let mut hub = Hub::new(Cable { doubles: 50, delays: 50, ..Cable::default() }).unwrap();
        let mut machines = [0; 2].map(|_| {
            let machine = TcpStream::connect((Ipv4Addr::LOCALHOST, hub.port)).unwrap();
            hub.plug().unwrap();
            machine
        });
        assert!(hub.check_used().is_err(), "nothing has passed");
        for from in 0..2 {
            let mut seen = [0; 20];
            for number in 0..20 {
                let bytes = [&60u32.to_be_bytes()[..], &frame(number)].concat();
                // A frame comes in pieces.
                let (start, rest) = bytes.split_at(number as usize);
                machines[from].write_all(start).unwrap();
                machines[from].write_all(rest).unwrap();
            }
            // The last ones are held for a moment only.
            while seen.contains(&0) {
                let mut bytes = [0; 64];
                machines[1 - from].read_exact(&mut bytes).unwrap();
                let number = u32::from_be_bytes(bytes[60..].try_into().unwrap());
                assert_eq!(frames(&bytes), [frame(number)]);
                seen[number as usize] += 1;
            }
            assert!(seen.iter().all(|count| (1..=2).contains(count)), "{seen:?}");
        }
        hub.check_used().unwrap();
        assert!(hub.report().contains("20 frames of the second machine: 0 lost"), "{}", hub.report());
        drop(machines);
    }

    #[test]
    fn a_frame_that_is_too_long_ends_the_cable() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut machine = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        machine.write_all(&[0xff; 4]).unwrap();
        let mut frames = Frames { stream: listener.accept().unwrap().0, bytes: Vec::new() };
        assert_eq!(frames.next().unwrap_err().kind(), ErrorKind::InvalidData);
    }
}

//! The driver of a serial port: a 16550, or an 8250 or 16450, which have no queues.

/// The registers of a serial port.
pub trait Registers {
    /// Reads the register at this offset, 0..=7.
    fn read(&mut self, register: u8) -> u8;
    /// Writes the register at this offset, 0..=7.
    fn write(&mut self, register: u8, value: u8);
}

/// The users' side of the port: it has bytes to send, and takes bytes that were received.
pub trait Line {
    /// Whether there is room for a received byte. If there is none, the port must be served again
    /// when there is.
    fn can_receive(&mut self) -> bool;
    /// Takes a byte that was received. There must be room for it.
    fn receive(&mut self, byte: u8);
    /// Passes up to `most` bytes to `send`. Returns how many.
    fn send(&mut self, most: usize, send: &mut dyn FnMut(u8)) -> usize;
    /// Whether the client has more bytes to send.
    fn has_more(&self) -> bool;
}

/// Offset of the receive buffer, the transmit holding register and the low divisor byte.
const DATA: u8 = 0;
/// Offset of the interrupt enable register and the high divisor byte.
const INTERRUPT_ENABLE: u8 = 1;
/// Offset of the interrupt identification register (read) and the queue control register (write).
const IDENTIFICATION: u8 = 2;
const LINE_CONTROL: u8 = 3;
const MODEM_CONTROL: u8 = 4;
const LINE_STATUS: u8 = 5;
const MODEM_STATUS: u8 = 6;
const SCRATCH: u8 = 7;

const ENABLE_RECEIVED: u8 = 1;
const ENABLE_TRANSMITTED: u8 = 2;
/// A value for the queue control register: queues enabled, interrupt at 14 bytes. Queues that were
/// enabled before keep what they have: bytes that came while an earlier driver had ended.
const QUEUES: u8 = 0xc1;
/// Bits of the identification register: the queues work.
const HAS_QUEUES: u8 = 0xc0;
/// A bit of the identification register: no interrupt is pending.
const NOTHING_PENDING: u8 = 1;
const DIVISOR_ACCESS: u8 = 0x80;
/// A value for the line control register: eight bits, no parity, one stop bit.
const EIGHT_BITS: u8 = 3;
/// Bits of the modem control register: data terminal ready, request to send, and OUT2, which
/// enables the interrupt.
const READY: u8 = 0x0b;
/// A bit of the modem control register: request to send. Without it the other side is to wait.
const REQUEST_TO_SEND: u8 = 2;
const LOOPBACK: u8 = 0x10;
const DATA_READY: u8 = 1;
const TRANSMITTER_EMPTY: u8 = 0x20;
/// A bit of the line status: the last byte has left the port, too.
const ALL_SENT: u8 = 0x40;
/// The value that the registers of a port that does not exist have.
const ABSENT: u8 = 0xff;

/// How often [`Uart::serve`] checks for more work: a port that always has some must not keep the
/// driver busy for ever.
const ROUNDS: usize = 1000;

/// How often the status is read, about a microsecond each time, while the bytes of an earlier
/// driver leave the port.
const SENDING_READS: usize = 10_000;

/// A serial port.
#[derive(Debug)]
pub struct Uart<R> {
    registers: R,
    /// How many bytes fit into the transmitter's queue when it is empty.
    depth: usize,
    enabled: u8,
    /// The modem control register, as it was written last.
    control: u8,
}

impl<R: Registers> Uart<R> {
    /// Sets the port up: 115200 baud, 8N1, interrupts for received bytes. With `loopback`, the port
    /// receives what it sends. Bytes that an earlier driver has given the port are sent first.
    /// `None`: there is no such port.
    pub fn new(mut registers: R, loopback: bool) -> Option<Uart<R>> {
        for pattern in [0x5a, 0xa5] {
            registers.write(SCRATCH, pattern);
            if registers.read(SCRATCH) != pattern {
                return None;
            }
        }
        registers.write(INTERRUPT_ENABLE, 0);
        let is_sent = |_: &usize| registers.read(LINE_STATUS) & ALL_SENT != 0;
        let _ = (0..SENDING_READS).find(is_sent);
        registers.write(LINE_CONTROL, DIVISOR_ACCESS);
        registers.write(DATA, 1);
        registers.write(INTERRUPT_ENABLE, 0);
        registers.write(LINE_CONTROL, EIGHT_BITS);
        registers.write(IDENTIFICATION, QUEUES);
        let control = if loopback { READY | LOOPBACK } else { READY };
        registers.write(MODEM_CONTROL, control);
        let has_queues = registers.read(IDENTIFICATION) & HAS_QUEUES == HAS_QUEUES;
        let mut uart = Uart { registers, depth: if has_queues { 16 } else { 1 }, enabled: 0, control };
        uart.enable(ENABLE_RECEIVED);
        Some(uart)
    }

    /// Receives and sends bytes until the port has no more work. It must be called on an interrupt,
    /// once more after the interrupt has been acknowledged (an edge in between is not seen), and
    /// when there are bytes to send.
    pub fn serve(&mut self, line: &mut impl Line) {
        for _ in 0..ROUNDS {
            let status = self.registers.read(LINE_STATUS);
            if status == ABSENT {
                return;
            }
            // Without room, received bytes stay in the port, and the other side is asked to wait.
            let can_receive = line.can_receive();
            self.request(can_receive);
            if can_receive && status & DATA_READY != 0 {
                line.receive(self.registers.read(DATA));
                continue;
            }
            let mut sent = 0;
            if status & TRANSMITTER_EMPTY != 0 {
                let registers = &mut self.registers;
                sent = line.send(self.depth, &mut |byte| registers.write(DATA, byte));
            }
            let received = if can_receive { ENABLE_RECEIVED } else { 0 };
            self.enable(if line.has_more() { received | ENABLE_TRANSMITTED } else { received });
            // Reading these registers ends the interrupts that have no data of their own.
            let identification = self.registers.read(IDENTIFICATION);
            self.registers.read(MODEM_STATUS);
            if sent == 0 && identification & NOTHING_PENDING != 0 {
                return;
            }
        }
    }

    /// Asks the other end of the line, by the RTS signal, to send or to wait.
    fn request(&mut self, send: bool) {
        let control = if send { self.control | REQUEST_TO_SEND } else { self.control & !REQUEST_TO_SEND };
        if self.control != control {
            self.registers.write(MODEM_CONTROL, control);
            self.control = control;
        }
    }

    fn enable(&mut self, interrupts: u8) {
        if self.enabled != interrupts {
            self.registers.write(INTERRUPT_ENABLE, interrupts);
            self.enabled = interrupts;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// A 16550 whose transmitter sends one queue at each [`Model::tick`].
    #[derive(Default)]
    struct Model {
        registers: [u8; 8],
        divisor: [u8; 2],
        queues: bool,
        has_queues: bool,
        received: VecDeque<u8>,
        transmitting: VecDeque<u8>,
        sent: Vec<u8>,
        empty_unread: bool,
        absent: bool,
        /// Whether the port sends while its status is read.
        sends_alone: bool,
        status_reads: usize,
    }

    impl Model {
        fn tick(&mut self) {
            while let Some(byte) = self.transmitting.pop_front() {
                if self.registers[4] & LOOPBACK != 0 {
                    self.received.push_back(byte)
                } else {
                    self.sent.push(byte)
                }
            }
            self.empty_unread = true;
        }

        fn interrupts(&self) -> bool {
            let enabled = self.registers[1];
            (enabled & 1 != 0 && !self.received.is_empty()) || (enabled & 2 != 0 && self.empty_unread)
        }
    }

    impl Registers for &mut Model {
        fn read(&mut self, register: u8) -> u8 {
            if self.absent {
                return ABSENT;
            }
            match register {
                0 => self.received.pop_front().expect("read only when there is a byte"),
                2 => {
                    let queues = if self.queues && self.has_queues { HAS_QUEUES } else { 0 };
                    let pending = self.interrupts();
                    if pending && self.received.is_empty() {
                        self.empty_unread = false;
                    }
                    queues | if pending { 0 } else { 1 }
                }
                5 => {
                    self.status_reads += 1;
                    if self.sends_alone && self.status_reads.is_multiple_of(4) {
                        self.tick();
                    }
                    let empty = if self.transmitting.is_empty() { TRANSMITTER_EMPTY | ALL_SENT } else { 0 };
                    empty | u8::from(!self.received.is_empty())
                }
                _ => self.registers[usize::from(register)],
            }
        }

        fn write(&mut self, register: u8, value: u8) {
            match register {
                0 | 1 if self.registers[3] & DIVISOR_ACCESS != 0 => {
                    self.divisor[usize::from(register)] = value
                }
                0 => {
                    let room = if self.has_queues { 16 } else { 1 };
                    assert!(self.transmitting.len() < room, "the transmitter is full");
                    self.transmitting.push_back(value);
                    self.empty_unread = false;
                }
                2 => {
                    let was_enabled = core::mem::replace(&mut self.queues, value & 1 != 0);
                    if !was_enabled || value & 2 != 0 {
                        self.received.clear();
                    }
                    if !was_enabled || value & 4 != 0 {
                        self.transmitting.clear();
                    }
                }
                1 if value & 2 != 0 && self.registers[1] & 2 == 0 => {
                    self.registers[1] = value;
                    self.empty_unread = self.transmitting.is_empty();
                }
                _ => self.registers[usize::from(register)] = value,
            }
        }
    }

    #[derive(Default)]
    struct Ends {
        received: Vec<u8>,
        to_send: VecDeque<u8>,
        full: bool,
    }

    impl Line for Ends {
        fn can_receive(&mut self) -> bool {
            !self.full
        }

        fn receive(&mut self, byte: u8) {
            self.received.push(byte);
        }

        fn send(&mut self, most: usize, send: &mut dyn FnMut(u8)) -> usize {
            let count = most.min(self.to_send.len());
            self.to_send.drain(..count).for_each(send);
            count
        }

        fn has_more(&self) -> bool {
            !self.to_send.is_empty()
        }
    }

    fn run(has_queues: bool) {
        let mut model = Model { has_queues, ..Model::default() };
        let text: Vec<u8> = (0..100).collect();
        let mut ends = Ends { to_send: text.iter().copied().collect(), ..Ends::default() };
        let mut uart = Uart::new(&mut model, false).expect("there is one");
        uart.serve(&mut ends);
        let mut ticks = 0;
        while !uart.registers.transmitting.is_empty() {
            uart.registers.tick();
            ticks += 1;
            if uart.registers.interrupts() {
                uart.serve(&mut ends);
            }
        }
        assert_eq!(ticks, if has_queues { 7 } else { 100 });
        assert!(!uart.registers.interrupts(), "nothing to send, no interrupt");
        uart.registers.received.extend(b"typed");
        assert!(uart.registers.interrupts());
        uart.serve(&mut ends);
        assert!(!uart.registers.interrupts());
        assert_eq!((model.sent, ends.received.as_slice(), model.divisor), (text, &b"typed"[..], [1, 0]));
    }

    #[test]
    fn everything_is_sent_by_interrupts_and_everything_that_comes_is_taken() {
        run(true);
    }

    #[test]
    fn a_port_without_queues_gets_one_byte_at_a_time() {
        run(false);
    }

    #[test]
    fn in_a_loop_what_is_sent_comes_back() {
        let mut model = Model { has_queues: true, ..Model::default() };
        let mut ends = Ends { to_send: (0..50).collect(), ..Ends::default() };
        let mut uart = Uart::new(&mut model, true).expect("there is one");
        uart.serve(&mut ends);
        while !uart.registers.transmitting.is_empty() || uart.registers.interrupts() {
            uart.registers.tick();
            uart.serve(&mut ends);
        }
        assert_eq!(ends.received, (0..50).collect::<Vec<u8>>());
    }

    #[test]
    fn what_does_not_fit_waits_in_the_port_and_does_not_interrupt() {
        let mut model = Model { has_queues: true, ..Model::default() };
        let mut ends = Ends { full: true, to_send: (0..20).collect(), ..Ends::default() };
        let mut uart = Uart::new(&mut model, false).expect("there is one");
        uart.registers.received.extend(b"typed");
        uart.serve(&mut ends);
        while !uart.registers.transmitting.is_empty() || uart.registers.interrupts() {
            uart.registers.tick();
            uart.serve(&mut ends);
        }
        assert_eq!((ends.received.len(), uart.registers.sent.len()), (0, 20), "sending goes on");
        assert_eq!(uart.registers.registers[4] & REQUEST_TO_SEND, 0, "the other side is to wait");
        ends.full = false;
        uart.serve(&mut ends);
        assert_eq!(ends.received, b"typed");
        assert_eq!(uart.registers.registers[4], READY);
        uart.registers.received.push_back(b'!');
        assert!(uart.registers.interrupts());
    }

    #[test]
    fn a_driver_that_is_started_again_loses_no_byte_of_the_port() {
        let mut model = Model { has_queues: true, sends_alone: true, ..Model::default() };
        let mut ends = Ends { to_send: (0..10).collect(), ..Ends::default() };
        Uart::new(&mut model, false).expect("there is one").serve(&mut ends);
        assert!(!model.transmitting.is_empty());
        model.received.extend(b"typed");
        let mut uart = Uart::new(&mut model, false).expect("there is one");
        uart.serve(&mut ends);
        assert_eq!((model.sent, ends.received.as_slice()), ((0..10).collect(), &b"typed"[..]));
    }

    #[test]
    fn a_port_that_does_not_exist_is_noticed() {
        let mut model = Model { absent: true, ..Model::default() };
        assert!(Uart::new(&mut model, false).is_none());
    }

    #[test]
    fn a_port_that_disappears_does_not_keep_the_driver() {
        let mut model = Model { has_queues: true, ..Model::default() };
        let mut ends = Ends::default();
        let mut uart = Uart::new(&mut model, false).expect("there is one");
        uart.registers.absent = true;
        uart.serve(&mut ends);
        assert!(ends.received.is_empty());
    }
}

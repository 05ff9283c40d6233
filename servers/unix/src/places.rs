//! The addresses and notification bits that the server uses for the memory that it shares with
//! drivers, in one place, so that no two connections have the same.

/// The address of the memory that is shared for the serial port and for virtual consoles.
pub(crate) const CONSOLES: u64 = 0x0500_0000_0000;
/// The address of the memory that is shared with sources of random bytes.
pub(crate) const ENTROPY: u64 = 0x0510_0000_0000;
/// The address of the memory that is shared with drivers of disks.
pub(crate) const DISKS: u64 = 0x0520_0000_0000;
/// The address of the memory that is kept for what is shared with drivers of disks.
pub(crate) const DISK_RESERVE: u64 = 0x0528_0000_0000;
/// The address of the memory that is shared with channels to servers of files.
pub(crate) const SHARES: u64 = 0x0530_0000_0000;
/// The address of the memory that is shared with the driver of streams.
pub(crate) const STREAMS: u64 = 0x0540_0000_0000;

/// The address of the memory that is shared with the driver of the network interface.
pub(crate) const NET: u64 = 0x0550_0000_0000;
/// The address of the buffers for frames.
pub(crate) const NET_BUFFERS: u64 = 0x0558_0000_0000;

/// The notification bit of consoles. Bit 0 is the executor's.
pub(crate) const CONSOLE_NEWS: u64 = 1 << 1;
/// The notification bit of streams.
pub(crate) const STREAM_NEWS: u64 = 1 << 6;
/// The notification bit of channels to servers of files.
pub(crate) const SHARE_NEWS: u64 = 1 << 7;
/// The notification bit of the first of four disks; those of the others follow.
pub(crate) const FIRST_DISK_NEWS: u64 = 1 << 8;
/// The notification bits of all disks.
pub(crate) const DISK_NEWS: u64 = FIRST_DISK_NEWS * 0xf;
/// The notification bit of the network interface, or of the task that has it.
pub(crate) const NET_NEWS: u64 = 1 << 12;

const _: () = {
    let all = [1, CONSOLE_NEWS, STREAM_NEWS, SHARE_NEWS, DISK_NEWS, NET_NEWS];
    let (mut seen, mut index) = (0, 0);
    while index < all.len() {
        assert!(seen & all[index] == 0, "each connection has notification bits of its own");
        seen |= all[index];
        index += 1;
    }
};

//! Tests of sockets of packet(7), of filters of sockets, and of rings, through the system calls of
//! programs.

use crate::world::{DATA, Gone, Program, World};
use crate::{EAGAIN, bytes, run, run_in};

const PACKET: u64 = 17;
const RAW: u64 = 3;
const DATAGRAM: u64 = 2;
const LEVEL: u64 = 263;
/// All frames, in the order of bytes of the network.
const ALL: u64 = 0x0300;
/// Where the tests keep an address, and the length of one.
const NAME: u64 = DATA + 0x100;
const LENGTH: u64 = DATA + 0x140;
/// Where the tests receive.
const BUFFER: u64 = DATA + 0x400;

/// Stores the address of frames of this type at the loopback.
async fn lo(p: &mut Program, protocol: u16) -> Result<(), Gone> {
    let protocol = protocol.to_be_bytes();
    p.store(NAME, &[17, 0, protocol[0], protocol[1], 1, 0, 0, 0]).await?;
    p.store(NAME + 8, &[0; 12]).await
}

/// Makes a packet socket that sees all frames of the loopback.
async fn tap(p: &mut Program, kind: u64) -> Result<u64, Gone> {
    let socket = p.call(41, &[PACKET, kind | 0o4000, 0]).await?;
    lo(p, 3).await?;
    assert_eq!(p.call(49, &[socket as u64, NAME, 20]).await?, 0);
    Ok(socket as u64)
}

/// Sends a datagram with two bytes over the loopback.
async fn datagram(p: &mut Program) -> Result<(), Gone> {
    let socket = p.call(41, &[2, DATAGRAM, 0]).await? as u64;
    p.store(NAME, &[2, 0, 0, 9, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]).await?;
    p.store(DATA, b"hi").await?;
    assert_eq!(p.call(44, &[socket, DATA, 2, 0, NAME, 16]).await?, 2);
    assert_eq!(p.call(3, &[socket]).await?, 0);
    Ok(())
}

async fn set(p: &mut Program, socket: u64, level: u64, option: u64, value: &[u8]) -> Result<i64, Gone> {
    p.store(LENGTH, value).await?;
    p.call(54, &[socket, level, option, LENGTH, value.len() as u64]).await
}

#[test]
fn packet_sockets_need_a_privilege_and_have_no_connections() {
    run(async |p| {
        assert_eq!(p.call(41, &[PACKET, RAW, ALL]).await?, 0);
        assert_eq!(p.call(41, &[PACKET, 1, ALL]).await?, -94, "no streams");
        lo(p, 3).await?;
        for (number, arguments) in [(42, &[0, NAME, 20][..]), (50, &[0, 5]), (43, &[0, 0, 0]), (48, &[0, 2])]
        {
            assert_eq!(p.call(number, arguments).await?, -95, "{number}");
        }
        assert_eq!(p.call(49, &[0, NAME, 19]).await?, -22, "too short");
        p.store(NAME + 4, &99u32.to_le_bytes()).await?;
        assert_eq!(p.call(49, &[0, NAME, 20]).await?, -19, "no such interface");
        assert_eq!(p.call(105, &[1000]).await?, 0);
        for kind in [RAW, DATAGRAM] {
            assert_eq!(p.call(41, &[PACKET, kind, ALL]).await?, -1);
        }
        Ok(())
    });
}

#[test]
fn frames_are_received_with_their_addresses_and_auxiliary_data() {
    run(async |p| {
        let tap = tap(p, RAW).await?;
        assert_eq!(p.call(45, &[tap, BUFFER, 100, 0, 0, 0]).await?, EAGAIN);
        assert_eq!(set(p, tap, LEVEL, 8, &1u32.to_le_bytes()).await?, 0, "PACKET_AUXDATA");
        assert_eq!(set(p, tap, 1, 29, &1u32.to_le_bytes()).await?, 0, "SO_TIMESTAMP");
        datagram(p).await?;
        // What is sent comes first, then the same as it arrives.
        for class in [4, 0] {
            let message = DATA + 0x200;
            p.store(message, &bytes(&[NAME, 20, message + 64, 1, message + 128, 128, 0])).await?;
            p.store(message + 64, &bytes(&[BUFFER, 40])).await?;
            assert_eq!(p.call(47, &[tap, message, 0x20]).await?, 44, "the whole length");
            assert_eq!(p.load::<2>(BUFFER + 12).await?, [8, 0]);
            let name = p.load::<20>(NAME).await?;
            assert_eq!(name[..12], [17, 0, 8, 0, 1, 0, 0, 0, 4, 3, class, 6]);
            assert_eq!(p.load_u64(message + 40).await?, 32 + 40, "the time and the auxiliary data");
            let auxiliary = p.load::<20>(message + 128 + 32 + 16).await?;
            assert_eq!((auxiliary[4], auxiliary[8], auxiliary[14]), (44, 44, 14));
            assert_eq!(p.load_u32(message + 48).await?, 0x20, "it was cut");
        }
        // The datagram found no socket, which a message of ICMP says.
        for _ in 0..2 {
            assert_eq!(p.call(45, &[tap, BUFFER, 100, 0, 0, 0]).await?, 14 + 20 + 8 + 30);
        }
        assert_eq!(p.call(45, &[tap, BUFFER, 100, 0, 0, 0]).await?, EAGAIN);
        p.store(LENGTH, &8u32.to_le_bytes()).await?;
        assert_eq!(p.call(55, &[tap, LEVEL, 6, BUFFER, LENGTH]).await?, 0, "PACKET_STATISTICS");
        assert_eq!((p.load_u32(BUFFER).await?, p.load_u32(BUFFER + 4).await?), (4, 0));
        p.store(LENGTH, &20u32.to_le_bytes()).await?;
        assert_eq!(p.call(51, &[tap, NAME, LENGTH]).await?, 0);
        assert_eq!(p.load::<12>(NAME).await?, [17, 0, 0, 3, 1, 0, 0, 0, 4, 3, 0, 6]);
        Ok(())
    });
}

#[test]
fn frames_are_sent_with_and_without_their_header() {
    run(async |p| {
        let raw = tap(p, RAW).await?;
        let cooked = tap(p, DATAGRAM).await?;
        p.store(BUFFER, &[0; 12]).await?;
        p.store(BUFFER + 12, &[0x88, 0xb5, 7]).await?;
        assert_eq!(p.call(1, &[raw, BUFFER, 15]).await?, 15);
        assert_eq!(p.call(1, &[raw, BUFFER, 13]).await?, -22, "no whole header");
        for _ in 0..2 {
            assert_eq!(p.call(0, &[cooked, BUFFER, 100]).await?, 1, "without the header");
        }
        assert_eq!(p.call(0, &[raw, BUFFER, 100]).await?, 15, "only as it arrives");
        lo(p, 0x88b6).await?;
        assert_eq!(p.call(44, &[cooked, BUFFER, 1, 0, NAME, 20]).await?, 1);
        for _ in 0..2 {
            assert_eq!(p.call(0, &[raw, BUFFER, 100]).await?, 15);
            assert_eq!(p.load::<2>(BUFFER + 12).await?, [0x88, 0xb6]);
        }
        // Neither bound nor told where to send to.
        let other = p.call(41, &[PACKET, RAW, 0]).await? as u64;
        assert_eq!(p.call(1, &[other, BUFFER, 15]).await?, -6);
        Ok(())
    });
}

#[test]
fn a_filter_decides_what_a_socket_receives_and_can_be_locked() {
    run(async |p| {
        let tap = tap(p, RAW).await?;
        // Incoming packets, of each 20 bytes.
        let program = [0xffff_f004_0000_0020_u64, 0x1_0100_0015 - 0x1_0000_0000, 20 << 32 | 6, 6];
        p.store(DATA + 0x200, &bytes(&program)).await?;
        let attach = bytes(&[4, DATA + 0x200]);
        assert_eq!(set(p, tap, 1, 27, &[0; 4]).await?, -2, "there is none");
        assert_eq!(set(p, tap, 1, 26, &attach[..12]).await?, -22);
        assert_eq!(set(p, tap, 1, 26, &bytes(&[0, DATA])).await?, -22, "no instructions");
        assert_eq!(set(p, tap, 1, 26, &bytes(&[1, DATA + 0x200])).await?, -22, "no end");
        assert_eq!(set(p, tap, 1, 26, &bytes(&[4, 8])).await?, -14, "no memory");
        assert_eq!(set(p, tap, 1, 26, &attach).await?, 0);
        datagram(p).await?;
        for _ in 0..2 {
            assert_eq!(p.call(45, &[tap, BUFFER, 100, 0, 0, 0]).await?, 20);
        }
        assert_eq!(p.call(45, &[tap, BUFFER, 100, 0, 0, 0]).await?, EAGAIN);
        assert_eq!(set(p, tap, 1, 44, &[1, 0, 0, 0]).await?, 0, "SO_LOCK_FILTER");
        for (option, value) in [(26, &attach[..]), (27, &[0; 4]), (44, &[0; 4])] {
            assert_eq!(set(p, tap, 1, option, value).await?, -1, "{option}");
        }
        Ok(())
    });
}

#[test]
fn a_ring_shows_frames_without_a_call_for_each() {
    run(async |p| {
        let tap = p.call(41, &[PACKET, RAW, 0]).await? as u64;
        p.store(LENGTH, &4u32.to_le_bytes()).await?;
        for (version, done, length) in [(2u32, -22, 2), (1, 0, 32)] {
            p.store(BUFFER, &version.to_le_bytes()).await?;
            assert_eq!(p.call(55, &[tap, LEVEL, 11, BUFFER, LENGTH]).await?, done, "PACKET_HDRLEN");
            assert_eq!(p.load_u32(BUFFER).await?, length);
        }
        let words = |words: [u32; 4]| words.map(u32::to_le_bytes).concat();
        let ring = words([4096, 2, 2048, 4]);
        assert_eq!(set(p, tap, LEVEL, 5, &ring).await?, -22, "the layout was not set");
        assert_eq!(set(p, tap, LEVEL, 10, &1u32.to_le_bytes()).await?, 0, "PACKET_VERSION");
        assert_eq!(p.call(9, &[0, 8192, 3, 1, tap, 0]).await?, -22, "no ring");
        for bad in
            [[4096, 2, 2048, 5], [4000, 2, 2000, 4], [4096, 2, 40, 204], [4096, 2, 2040, 4], [0, 2, 16, 4]]
        {
            assert_eq!(set(p, tap, LEVEL, 5, &words(bad)).await?, -22, "{bad:?}");
        }
        let large = words([1 << 20, 1 << 10, 1 << 20, 1 << 10]);
        assert_eq!(set(p, tap, LEVEL, 5, &large).await?, -12);
        assert_eq!(set(p, tap, LEVEL, 5, &ring).await?, 0);
        assert_eq!(set(p, tap, LEVEL, 5, &ring).await?, -16, "there is one");
        assert_eq!(set(p, tap, LEVEL, 10, &1u32.to_le_bytes()).await?, -16);
        let memory = p.call(9, &[0, 8192, 3, 1, tap, 0]).await? as u64;
        lo(p, 3).await?;
        assert_eq!(p.call(49, &[tap, NAME, 20]).await?, 0);
        let poll = bytes(&[tap | 1 << 32]);
        p.store(BUFFER, &poll).await?;
        assert_eq!(p.call(7, &[BUFFER, 1, 0]).await?, 0, "nothing has arrived");
        datagram(p).await?;
        // The frames are there although no call has asked for them.
        for frame in 0..4 {
            let at = memory + frame * 2048;
            assert_eq!(p.load_u32(at).await? & 1, 1, "frame {frame}");
            let length = if frame < 2 { 44 } else { 72 };
            assert_eq!((p.load_u32(at + 4).await?, p.load_u32(at + 8).await?), (length, length));
            assert_eq!(p.load_u32(at + 12).await?, 66 | 80 << 16, "where it begins");
            assert_eq!(
                p.load::<11>(at + 32).await?,
                [17, 0, 8, 0, 1, 0, 0, 0, 4, 3, [4, 0][frame as usize % 2]]
            );
            assert_eq!(p.load::<3>(at + 66 + 12).await?, [8, 0, 0x45]);
        }
        assert_eq!(p.call(7, &[BUFFER, 1, 0]).await?, 1);
        // More wait in the socket until the program gives frames back.
        datagram(p).await?;
        for frame in 0..4 {
            p.store(memory + frame * 2048, &[0; 4]).await?;
        }
        assert_eq!(p.call(7, &[BUFFER, 1, 0]).await?, 1);
        for frame in 0..4 {
            assert_eq!(p.load_u32(memory + frame * 2048).await? & 1, 1, "frame {frame} again");
            p.store(memory + frame * 2048, &[0; 4]).await?;
        }
        assert_eq!(p.call(7, &[BUFFER, 1, 0]).await?, 0);
        assert_eq!(set(p, tap, LEVEL, 5, &words([0; 4])).await?, 0, "the ring is given up");
        datagram(p).await?;
        assert_eq!(p.load_u32(memory).await?, 0);
        assert_eq!(p.call(45, &[tap, DATA + 0x200, 100, 0, 0, 0]).await?, 44);
        Ok(())
    });
}

#[test]
fn proc_lists_the_sockets_that_descriptors_name() {
    let world = World::new();
    world.install_proc();
    run_in(&world, async |p| {
        let packet = tap(p, DATAGRAM).await?;
        let netlink = p.call(41, &[16, RAW, 0]).await? as u64;
        p.store(NAME, &[16, 0, 0, 0, 77, 0, 0, 0, 0, 0, 0, 0]).await?;
        assert_eq!(p.call(49, &[netlink, NAME, 12]).await?, 0);
        let unix = p.call(41, &[1, 1, 0]).await? as u64;
        p.store(NAME, b"\x01\0\0name").await?;
        assert_eq!(p.call(49, &[unix, NAME, 7]).await?, 0);
        assert_eq!(p.call(50, &[unix, 5]).await?, 0);
        // A second descriptor does not list the socket a second time.
        assert!(p.call(32, &[unix]).await? > 0);
        for (file, wanted, socket) in [
            ("unix", "00000002 00000000 00010000 0001 01 INODE @name\n", unix),
            ("netlink", " 0   77         00000000 ", netlink),
            ("packet", " 3      2    0003   1     1 0      0      INODE", packet),
        ] {
            assert_eq!(p.call(5, &[socket, BUFFER]).await?, 0);
            let inode = p.load_u64(BUFFER + 8).await?.to_string();
            let path = p.string(DATA, &format!("/proc/net/{file}")).await?;
            let list = p.call(2, &[path, 0]).await? as u64;
            let count = p.call(0, &[list, BUFFER, 500]).await? as usize;
            let text = p.load::<500>(BUFFER).await?;
            let text = core::str::from_utf8(&text[..count]).unwrap();
            let wanted = wanted.replace("INODE", &inode);
            assert!(text.contains(&wanted) && text.contains(&inode), "{wanted:?} is not in {text}");
            assert_eq!(text.lines().count(), 2, "{text}");
            assert_eq!(p.call(3, &[list]).await?, 0);
        }
        Ok(())
    });
}

#[test]
fn all_of_this_is_so_with_the_network_in_another_task() {
    let tests: &[fn()] = &[
        packet_sockets_need_a_privilege_and_have_no_connections,
        frames_are_received_with_their_addresses_and_auxiliary_data,
        frames_are_sent_with_and_without_their_header,
        a_filter_decides_what_a_socket_receives_and_can_be_locked,
        a_ring_shows_frames_without_a_call_for_each,
        proc_lists_the_sockets_that_descriptors_name,
    ];
    for test in tests {
        unix::testing::elsewhere(test);
    }
}

//! The loaders' protocols, from structures made as their specifications say.
use x2::boot_info::{Screen, Writer};
use x2::kip::{MemoryDescriptor, MemoryKind as Kind};

use super::kickstart::Missing;
use super::*;
use crate::initial_servers::InitialServer;
use crate::memory::{PhysAddr, PhysRange};

struct Memory(Vec<u8>);

const BASE: u64 = 0x1_0000;

impl PhysicalMemory for Memory {
    fn bytes(&self, address: u64, length: usize) -> Option<&[u8]> {
        self.0.get(usize::try_from(address.checked_sub(BASE)?).ok()?..)?.get(..length)
    }
}

impl Memory {
    fn put(&mut self, at: u64, words: &[u32]) {
        for (index, word) in words.iter().enumerate() {
            let at = (at - BASE) as usize + index * 4;
            self.0[at..at + 4].copy_from_slice(&word.to_le_bytes());
        }
    }

    fn put_text(&mut self, at: u64, text: &[u8]) {
        self.0[(at - BASE) as usize..][..text.len()].copy_from_slice(text);
    }
}

/// Two ranges and two modules, at BASE.
fn multiboot1_information() -> Memory {
    let mut memory = Memory(vec![0; 0x1000]);
    let word = |offset: u64| (BASE + offset) as u32;
    memory.put(
        BASE,
        &[1 << 2 | 1 << 3 | 1 << 6, 0, 0, 0, word(0x200), 2, word(0x100), 0, 0, 0, 0, 48, word(0x180)],
    );
    memory.put(BASE + 0x100, &[0x10_0000, 0x10_1234, word(0x220), 0, 0x20_0000, 0x20_0001, word(0x240), 0]);
    memory.put(BASE + 0x180, &[20, 0x10_0000, 0, 0xf0_0000, 0, 1, 20, 0, 0, 0x9_f000, 0, 1]);
    memory.put_text(BASE + 0x200, b"kernel log=debug\0");
    memory.put_text(BASE + 0x220, b"sigma0 verbose\0");
    memory.put_text(BASE + 0x240, b"root\0");
    memory
}

fn tag(kind: u32, content: &[u8]) -> Vec<u8> {
    let mut tag = vec![];
    tag.extend_from_slice(&kind.to_le_bytes());
    tag.extend_from_slice(&(8 + content.len() as u32).to_le_bytes());
    tag.extend_from_slice(content);
    tag.resize(tag.len().next_multiple_of(8), 0);
    tag
}

/// The machine of `multiboot1_information`, described by tags, with an ACPI root pointer.
/// The tag of a framebuffer of a kind with lines of `pitch` bytes.
fn framebuffer(kind: u8, pitch: u32) -> Vec<u8> {
    let mut content = 0xfd00_0000_u64.to_le_bytes().to_vec();
    content.extend([pitch, 1024, 768].map(u32::to_le_bytes).concat());
    content.extend([32, kind, 0, 0, 16, 8, 8, 8, 0, 8]);
    tag(8, &content)
}

fn multiboot2_information() -> Memory {
    let module = |start: u32, end: u32, text: &[u8]| {
        let mut content = [start.to_le_bytes(), end.to_le_bytes()].concat();
        content.extend_from_slice(text);
        tag(3, &content)
    };
    let mut map = [24_u32.to_le_bytes(), 0_u32.to_le_bytes()].concat();
    for (start, size, kind) in [(0x10_0000_u64, 0xf0_0000_u64, 1_u64), (0, 0x9_f000, 1)] {
        map.extend_from_slice(&[start.to_le_bytes(), size.to_le_bytes(), kind.to_le_bytes()].concat());
    }
    let mut bytes = vec![0; 8];
    bytes.extend(tag(1, b"kernel log=debug\0"));
    bytes.extend(tag(21, &0x80_0000_u32.to_le_bytes()));
    bytes.extend(module(0x10_0000, 0x10_1234, b"sigma0 verbose\0"));
    bytes.extend(module(0x20_0000, 0x20_0001, b"root\0"));
    bytes.extend(tag(6, &map));
    bytes.extend(framebuffer(1, 1024 * 4));
    bytes.extend(tag(15, b"RSD PTR "));
    bytes.extend(tag(14, b"RSD PTR "));
    bytes.extend(tag(0, &[]));
    let size = (bytes.len() as u32).to_le_bytes();
    bytes[..4].copy_from_slice(&size);
    Memory(bytes)
}

fn check(boot: &BootInformation) {
    let available = |start, end| MemoryRange { start, end, kind: MemoryKind::Available };
    assert_eq!(boot.memory(), [available(0, 0x9_f000), available(0x10_0000, 0x100_0000)]);
    assert_eq!(boot.command_line(), "kernel log=debug");
    let modules: Vec<_> = boot
        .modules()
        .iter()
        .map(|module| (module.start, module.end, boot.module_command_line(module)))
        .collect();
    assert_eq!(modules, [(0x10_0000, 0x10_1234, "sigma0 verbose"), (0x20_0000, 0x20_0001, "root")]);
    assert_eq!(boot.loss(), None);
}

#[test]
fn multiboot_1() {
    let mut boot = BootInformation::empty(Protocol::Kickstart);
    multiboot1::parse(&multiboot1_information(), BASE, &mut boot).unwrap();
    assert_eq!(boot.protocol, Protocol::Multiboot1);
    check(&boot);
}

#[test]
fn multiboot_2() {
    let mut boot = BootInformation::empty(Protocol::Kickstart);
    let memory = multiboot2_information();
    multiboot2::parse(&memory, BASE, &mut boot).unwrap();
    assert_eq!(boot.protocol, Protocol::Multiboot2);
    check(&boot);
    let root = boot.rsdp.unwrap();
    assert_eq!(memory.word(root - 8, "tag").unwrap(), 15, "the newer root pointer wins");
    assert_eq!(boot.screen, Some(SCREEN));
}

const SCREEN: Screen = Screen {
    physical: 0xfd00_0000,
    pitch: 4096,
    width: 1024,
    height: 768,
    bits: 32,
    colours: 0x0800_0808_0810,
};

#[test]
fn a_screen_is_one_of_pixels_with_colours_or_of_characters() {
    let read = |kind, pitch| {
        let mut bytes = vec![0; 8];
        bytes.extend(framebuffer(kind, pitch));
        bytes.extend(tag(6, &[24_u32.to_le_bytes(), 0_u32.to_le_bytes()].concat()));
        bytes.extend(tag(0, &[]));
        let size = (bytes.len() as u32).to_le_bytes();
        bytes[..4].copy_from_slice(&size);
        let mut boot = BootInformation::empty(Protocol::Multiboot2);
        multiboot2::parse(&Memory(bytes), BASE, &mut boot).unwrap();
        boot.screen
    };
    assert_eq!(read(1, 4096), Some(SCREEN));
    assert_eq!(read(2, 2048), Some(Screen { pitch: 2048, bits: 0, colours: 0, ..SCREEN }));
    // Pixels with a palette, and lines that overlap.
    assert_eq!([read(0, 4096), read(1, 4095), read(2, 2047), read(1, 0)], [None; 4]);
}

#[test]
fn without_a_memory_map_there_is_no_boot() {
    let mut memory = multiboot1_information();
    memory.put(BASE, &[1 << 3]);
    let mut boot = BootInformation::empty(Protocol::Kickstart);
    assert_eq!(multiboot1::parse(&memory, BASE, &mut boot), Err(BootError::NoMemoryMap));
    let mut memory = multiboot2_information();
    memory.put(BASE + 8, &[0, 8]);
    assert_eq!(multiboot2::parse(&memory, BASE, &mut boot), Err(BootError::NoMemoryMap));
}

/// No change of one byte and no truncation makes the parsers panic or run for ever.
#[test]
fn broken_information_is_harmless() {
    type Parse = fn(&Memory, u64, &mut BootInformation) -> Result<(), BootError>;
    let parsers: [(Memory, Parse); 2] = [
        (multiboot1_information(), |memory, at, boot| multiboot1::parse(memory, at, boot)),
        (multiboot2_information(), |memory, at, boot| multiboot2::parse(memory, at, boot)),
    ];
    for (memory, parse) in parsers {
        for at in 0..memory.0.len().min(0x280) {
            for value in [0, 1, 7, 0x7f, 0x80, 0xff] {
                let mut broken = Memory(memory.0.clone());
                broken.0[at] = value;
                let _ = parse(&broken, BASE, &mut BootInformation::empty(Protocol::Kickstart));
            }
            let short = Memory(memory.0[..at].to_vec());
            let _ = parse(&short, BASE, &mut BootInformation::empty(Protocol::Kickstart));
        }
    }
}

#[test]
fn what_does_not_fit_is_dropped_and_told() {
    let mut boot = BootInformation::empty(Protocol::Multiboot1);
    for index in 0..MAX_RANGES as u64 + 1 {
        boot.add_range(index << 20, 4096, MemoryKind::Available);
    }
    assert!(boot.loss().unwrap().contains("memory ranges"));
    let mut boot = BootInformation::empty(Protocol::Multiboot1);
    for _ in 0..MAX_MODULES {
        boot.add_module(0, 1, &[b'a'; 200]);
    }
    assert!(boot.loss().unwrap().contains("command lines"));
    boot.add_module(0, 1, b"");
    assert!(boot.loss().unwrap().contains("modules"));
    boot.add_range(u64::MAX, 2, MemoryKind::Available);
    assert_eq!(boot.memory(), [], "a range that wraps is ignored");
}

fn server(low: u64, high: u64) -> InitialServer {
    InitialServer { ip: low, sp: 0, low, high }
}

/// The descriptors that kickstart was seen to write (ABI 1.7), and a boot info that leads to the
/// kernel's command line.
/// Rules: ABI 1.5.
#[test]
fn kickstart() {
    let descriptors = [
        (Kind::Shared, 0, 0, u64::MAX),
        (Kind::Conventional, 1, 0, 0x9_fbff),
        (Kind::Architecture, 2, 0x9_fc00, 0x9_ffff),
        (Kind::Conventional, 1, 0x10_0000, 0xffd_ffff),
        (Kind::Shared, 0, 0xa_0000, 0xb_ffff),
        (Kind::Reserved, 0, 0xe20_0000, 0xf1f_ffff),
        (Kind::BootLoader, 2, 0xf0_0000, 0xf0_5bff),
    ]
    .map(|(kind, subtype, low, last)| MemoryDescriptor::physical(kind, subtype, low, last));
    let mut memory = Memory(vec![0; 0x3000]);
    let mut writer = Writer::new(&mut memory.0[..4096]).unwrap();
    writer.module(0x1000, 1, b"data").unwrap();
    writer.multiboot(BASE + 0x1000).unwrap();
    writer.finish();
    memory.put(BASE + 0x1000, &[1 << 3, 0, 0, 0, 0, 3, (BASE + 0x1100) as u32]);
    memory.put(BASE + 0x1100, &[0x80_0000, 0x90_0000, (BASE + 0x1200) as u32, 0]);
    memory.put_text(BASE + 0x1200, b"kernel log=trace\0");
    let mut boot = BootInformation::empty(Protocol::Multiboot1);
    kickstart::parse(&memory, descriptors.into_iter(), BASE, &mut boot);
    assert_eq!(boot.protocol, Protocol::Kickstart);
    assert_eq!(boot.command_line(), "kernel log=trace");
    assert_eq!(boot.memory().len(), 3);
    assert_eq!(boot.memory()[2].end, 0xffe_0000);

    let range = |start, end| PhysRange::new(PhysAddr::new(start), PhysAddr::new(end));
    let image = range(0x80_0000, 0xe0_0000);
    let servers = (server(0xf0_0000, 0xf0_5b00), server(0x100_0000, 0x101_0000));
    let choose = |servers, descriptors: &[MemoryDescriptor], image| {
        let ram = range(0x10_0000, 0xffe_0000);
        let is_memory = |range: PhysRange| ram.contains(range.start) && range.end <= ram.end;
        kickstart::kernel_memory(servers, descriptors.iter().copied(), image, is_memory)
    };
    assert_eq!(choose(servers, &descriptors, image), Ok(range(0xe20_0000, 0xf20_0000)));
    assert_eq!(choose(servers, &descriptors[..5], image), Err(Missing::KernelMemory));
    assert_eq!(choose((server(0, 0), servers.1), &descriptors, image), Err(Missing::Servers));
    let conflict = Err(Missing::Conflict(range(0xe20_0000, 0xf20_0000)));
    assert_eq!(choose(servers, &descriptors, range(0xf00_0000, 0xf10_0000)), conflict);
    assert_eq!(choose((servers.0, server(0xe10_0000, 0xe20_0001)), &descriptors, image), conflict);
}

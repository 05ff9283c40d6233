//! Interfaces and what is sent through them: everything below the sockets.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::changes::Changes;
use crate::fragment::Fragments;
use crate::hash::{Key, Random};
use crate::neighbour::Neighbours;
use crate::time::Instant;
use crate::types::*;

/// The interface `lo`.
pub(crate) const LO: InterfaceIndex = InterfaceIndex(1);
/// The MTU of `lo`: the largest packet of IPv4, and one byte that keeps words aligned.
pub(crate) const LO_MTU: usize = 65536;
/// Buffers that are kept for the next packets.
const POOL: usize = 32;
/// Larger buffers are given back.
const POOLED: usize = 68 << 10;

/// An interface and its queue.
pub(crate) struct Link {
    pub(crate) public: Interface,
    /// Frames for the device.
    pub(crate) queue: VecDeque<Frame>,
    /// Groups, with how many sockets have joined each.
    pub(crate) groups: Vec<(IpAddr, u32)>,
    /// How many memberships of packet sockets ask for frames to other systems.
    pub(crate) watchers: u32,
    /// When routers are asked next, and how often still.
    pub(crate) solicit: Option<(Instant, u32)>,
}

/// A packet that stays in the system.
pub(crate) struct Looped {
    /// It begins with room for an Ethernet header.
    pub(crate) bytes: Vec<u8>,
    /// Where it arrives.
    pub(crate) interface: InterfaceIndex,
}

/// A frame for packet sockets.
pub(crate) struct Tapped {
    pub(crate) bytes: Vec<u8>,
    pub(crate) interface: InterfaceIndex,
    /// The packet socket that sent it, which does not receive it.
    pub(crate) sender: Option<SocketId>,
}

/// Interfaces, addresses, routes, neighbours, and packets on their way.
pub(crate) struct Net {
    pub(crate) now: Instant,
    pub(crate) limits: Limits,
    pub(crate) key: Key,
    pub(crate) random: Random,
    pub(crate) links: Vec<Link>,
    next_interface: u32,
    pub(crate) addresses: Vec<Address>,
    pub(crate) routes: Vec<Route>,
    /// Changes with interfaces, addresses, routes and path MTUs: paths of another generation are
    /// looked up again.
    pub(crate) generation: u64,
    /// IPv6 addresses that another system may have, and until when its answer is waited for.
    pub(crate) duplicates: Vec<(InterfaceIndex, Ipv6Addr, Instant)>,
    /// IPv4 addresses that a server has granted and another system may have, each with the hardware
    /// address of the one that has it.
    pub(crate) probed: Vec<(InterfaceIndex, Ipv4Addr, Option<[u8; 6]>)>,
    pub(crate) neighbours: Neighbours,
    pub(crate) fragments: Fragments,
    /// The largest packets that paths take, where routers said so, and until when.
    pub(crate) path_mtus: BTreeMap<IpAddr, (usize, Instant)>,
    pub(crate) looped: VecDeque<Looped>,
    pub(crate) looped_bytes: usize,
    pool: Vec<Vec<u8>>,
    /// Whether frames are copied for packet sockets.
    pub(crate) tapping: bool,
    pub(crate) tapped: VecDeque<Tapped>,
    /// Packets whose next hop did not answer.
    pub(crate) undelivered: VecDeque<(InterfaceIndex, Vec<u8>)>,
    /// Sockets whose readiness may have changed.
    pub(crate) ready: VecDeque<SocketId>,
    /// Bytes of all sockets' buffers.
    pub(crate) memory: usize,
    /// What each user but the superuser has of sockets and of their memory.
    shares: BTreeMap<u32, Share>,
    /// What the caller has not been told yet.
    pub(crate) changes: Changes,
    /// A buffer could not grow: empty ones are given back.
    pub(crate) starved: bool,
    /// Answers to strange packets that may still be sent in this second, and the second.
    budget: (u32, u64),
}

/// The user without limits of its own.
const SUPERUSER: u32 = 0;

/// What a user has.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Share {
    sockets: usize,
    /// Bytes of the sockets' buffers.
    memory: usize,
}

/// Messages of ICMP, resets and challenge acknowledgements in a second: one packet does not make
/// the stack send more than that.
const ANSWERS_PER_SECOND: u32 = 1000;

impl Net {
    pub(crate) fn new(seed: [u8; 32], limits: Limits) -> Net {
        let half = |at: usize| {
            let mut half = [0; 16];
            half.copy_from_slice(&seed[at..at + 16]);
            Key::new(half)
        };
        let mut random = Random::new(half(16));
        let mut other = [0; 16];
        other[..8].copy_from_slice(&random.next().to_le_bytes());
        other[8..].copy_from_slice(&random.next().to_le_bytes());
        let mut net = Net {
            now: Instant::default(),
            limits,
            key: half(0),
            random,
            links: Vec::new(),
            next_interface: 1,
            addresses: Vec::new(),
            routes: Vec::new(),
            generation: 1,
            duplicates: Vec::new(),
            probed: Vec::new(),
            neighbours: Neighbours::new(Key::new(other)),
            fragments: Fragments::default(),
            path_mtus: BTreeMap::new(),
            looped: VecDeque::new(),
            looped_bytes: 0,
            pool: Vec::new(),
            tapping: false,
            tapped: VecDeque::new(),
            undelivered: VecDeque::new(),
            ready: VecDeque::new(),
            memory: 0,
            shares: BTreeMap::new(),
            changes: Changes::default(),
            starved: false,
            budget: (ANSWERS_PER_SECOND, 0),
        };
        let lo = net.add_link("lo", [0; 6], LO_MTU, Offload::default(), true);
        for (address, length) in
            [(IpAddr::V4(Ipv4Addr::LOCALHOST), 8), (IpAddr::V6(Ipv6Addr::LOCALHOST), 128)]
        {
            let prefix = Prefix { address, length };
            net.addresses.push(Address {
                interface: lo,
                prefix,
                expires: None,
                deprecated: None,
                tentative: false,
            });
        }
        if let Some(link) = net.link_mut(lo) {
            link.public.up = true;
        }
        net
    }

    pub(crate) fn add_link(
        &mut self,
        name: &str,
        mac: [u8; 6],
        mtu: usize,
        offload: Offload,
        loopback: bool,
    ) -> InterfaceIndex {
        let index = InterfaceIndex(self.next_interface);
        self.next_interface += 1;
        let public = Interface {
            index,
            name: String::from(name),
            mac,
            mtu,
            offload,
            loopback,
            up: false,
            link: true,
            promiscuous: false,
            counters: Counters::default(),
        };
        self.links.push(Link {
            public,
            queue: VecDeque::new(),
            groups: Vec::new(),
            watchers: 0,
            solicit: None,
        });
        self.generation += 1;
        self.note_link(index);
        index
    }

    pub(crate) fn link(&self, index: InterfaceIndex) -> Option<&Link> {
        self.links.iter().find(|link| link.public.index == index)
    }

    pub(crate) fn link_mut(&mut self, index: InterfaceIndex) -> Option<&mut Link> {
        self.links.iter_mut().find(|link| link.public.index == index)
    }

    pub(crate) fn up(&self, index: InterfaceIndex) -> bool {
        self.link(index).is_some_and(|link| link.public.up)
    }

    /// An empty buffer for a packet.
    pub(crate) fn buffer(&mut self) -> Vec<u8> {
        self.pool.pop().unwrap_or_default()
    }

    /// Takes a buffer back.
    pub(crate) fn recycle(&mut self, mut buffer: Vec<u8>) {
        if self.pool.len() < POOL && buffer.capacity() <= POOLED {
            buffer.clear();
            self.pool.push(buffer);
        }
    }

    /// Whether another answer to a packet that deserves none by right may be sent.
    pub(crate) fn may_answer(&mut self) -> bool {
        let second = self.now.micros() / 1_000_000;
        if self.budget.1 != second {
            self.budget = (ANSWERS_PER_SECOND, second);
        }
        let left = self.budget.0;
        self.budget.0 = left.saturating_sub(1);
        left > 0
    }

    /// What a user has; nothing for the superuser, which may have everything.
    fn share(&self, owner: u32) -> Share {
        if owner == SUPERUSER {
            Share::default()
        } else {
            self.shares.get(&owner).copied().unwrap_or_default()
        }
    }

    fn change_share(&mut self, owner: u32, change: impl FnOnce(&mut Share)) {
        if owner == SUPERUSER {
            return;
        }
        let share = self.shares.entry(owner).or_default();
        change(share);
        if *share == Share::default() {
            self.shares.remove(&owner);
        }
    }

    /// Counts a socket of a user; false if the user may have no more: half of all sockets.
    pub(crate) fn add_socket(&mut self, owner: u32) -> bool {
        let fits = self.share(owner).sockets < self.limits.sockets / 2;
        if fits {
            self.change_share(owner, |share| share.sockets += 1);
        }
        fits
    }

    pub(crate) fn remove_socket(&mut self, owner: u32) {
        self.change_share(owner, |share| share.sockets -= 1);
    }

    /// Whether the buffers of a user's sockets may grow by `bytes`: a user may have half of the
    /// memory, and the superuser all.
    pub(crate) fn grow(&mut self, bytes: usize, owner: u32) -> bool {
        if self.memory + bytes > self.limits.memory {
            self.starved = true;
            return false;
        }
        if self.share(owner).memory + bytes > self.limits.memory / 2 {
            return false;
        }
        self.memory += bytes;
        self.change_share(owner, |share| share.memory += bytes);
        true
    }

    /// Whether a user's empty buffers are given back when they become empty, not kept for the next
    /// data.
    pub(crate) fn is_short(&self, owner: u32) -> bool {
        self.memory > self.limits.memory / 2 || self.share(owner).memory > self.limits.memory / 4
    }

    /// Gives back memory of a user's buffers.
    pub(crate) fn shrink(&mut self, bytes: usize, owner: u32) {
        debug_assert!(self.memory >= bytes);
        self.memory = self.memory.saturating_sub(bytes);
        self.change_share(owner, |share| share.memory -= bytes);
    }

    /// Whether an address is one of this system's, at an interface that is up.
    pub(crate) fn is_local(&self, address: IpAddr) -> bool {
        if let IpAddr::V4(address) = address
            && address.is_loopback()
        {
            return self.up(LO);
        }
        self.addresses
            .iter()
            .any(|own| own.prefix.address == address && !own.tentative && self.up(own.interface))
    }

    /// Whether an address is the broadcast address of an interface's network, or of all.
    pub(crate) fn is_broadcast(&self, address: IpAddr) -> bool {
        let IpAddr::V4(address) = address else { return false };
        address == Ipv4Addr::BROADCAST
            || self.addresses.iter().any(|own| {
                let IpAddr::V4(prefix) = own.prefix.address else { return false };
                let host = u32::MAX.checked_shr(own.prefix.length.into()).unwrap_or(0);
                own.prefix.length < 31
                    && !prefix.is_loopback()
                    && u32::from(prefix) | host == u32::from(address)
            })
    }

    /// Whether an interface takes packets to a group.
    pub(crate) fn in_group(&self, interface: InterfaceIndex, group: IpAddr) -> bool {
        let own = match group {
            IpAddr::V4(group) => group == Ipv4Addr::new(224, 0, 0, 1),
            IpAddr::V6(group) => {
                group.segments()[0] & 0xff0f == 0xff01
                    || group == Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1)
                    || self.addresses.iter().any(|own| match own.prefix.address {
                        IpAddr::V6(address) => own.interface == interface && solicited_node(address) == group,
                        IpAddr::V4(_) => false,
                    })
            }
        };
        own || self.link(interface).is_some_and(|link| link.groups.iter().any(|entry| entry.0 == group))
    }
}

/// The group of the neighbours whose addresses end like this one.
pub(crate) fn solicited_node(address: Ipv6Addr) -> Ipv6Addr {
    let [.., a, b, c] = address.octets();
    Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00 | u16::from(a), u16::from(b) << 8 | u16::from(c))
}

/// Whether a network contains an address.
pub(crate) fn contains(prefix: &Prefix, address: IpAddr) -> bool {
    match (prefix.address, address) {
        (IpAddr::V4(network), IpAddr::V4(address)) => {
            let differ = u32::from(network) ^ u32::from(address);
            differ.checked_shr(32 - u32::from(prefix.length.min(32))).unwrap_or(0) == 0
        }
        (IpAddr::V6(network), IpAddr::V6(address)) => {
            let differ = u128::from(network) ^ u128::from(address);
            differ.checked_shr(128 - u32::from(prefix.length.min(128))).unwrap_or(0) == 0
        }
        _ => false,
    }
}

/// The address of a link of IPv6.
pub(crate) fn is_link_local(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.segments()[0] & 0xffc0 == 0xfe80)
}

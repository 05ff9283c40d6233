//! Interfaces of the network, by Linux' numbers (netdevice(7)).

use inet::{Interface, InterfaceIndex, Internet};
use unix::{Error, Result};

const UP: u32 = 1;
const BROADCAST: u32 = 2;
const LOOPBACK: u32 = 8;
const RUNNING: u32 = 0x40;
const PROMISCUOUS: u32 = 0x100;
const MULTICAST: u32 = 0x1000;
const LOWER_UP: u32 = 0x1_0000;

/// The type of an interface's hardware: ARPHRD_LOOPBACK or ARPHRD_ETHER.
pub fn device_type(interface: &Interface) -> u16 {
    if interface.loopback { 772 } else { 1 }
}

/// The flags of an interface (IFF_UP and so on).
pub fn flags(interface: &Interface) -> u32 {
    let mut flags = if interface.loopback { LOOPBACK } else { BROADCAST | MULTICAST };
    flags |= if interface.up { UP } else { 0 };
    flags |= if interface.up && interface.link { RUNNING | LOWER_UP } else { 0 };
    flags | if interface.promiscuous { PROMISCUOUS } else { 0 }
}

/// The state of an interface (IF_OPER_UP and so on).
pub fn state(interface: &Interface) -> u8 {
    match (interface.loopback, interface.up && interface.link) {
        (true, _) => 0,
        (false, true) => 6,
        (false, false) => 2,
    }
}

/// Sets those flags of an interface that `mask` has. Flags that cannot be changed are ignored.
/// `ENODEV`.
pub fn set_flags(stack: &mut Internet, interface: InterfaceIndex, wanted: u32, mask: u32) -> Result<()> {
    if mask & UP != 0 {
        stack.set_up(interface, wanted & UP != 0).map_err(|_| Error::ENODEV)?;
    }
    if mask & PROMISCUOUS != 0 {
        stack.set_promiscuous(interface, wanted & PROMISCUOUS != 0).map_err(|_| Error::ENODEV)?;
    }
    Ok(())
}

//! The traps of GNU Mach's 64-bit interface, by number.
//!
//! A trap is a SYSCALL with the negative number in RAX. Its first six arguments are in RDI, RSI,
//! RDX, R10, R8 and R9, further ones on the stack above the return address. The result of 32 bits
//! comes in RAX.

/// What a trap does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trap {
    /// `mach_msg`: sends and receives messages.
    Message,
    /// `mach_reply_port`: makes a port.
    ReplyPort,
    /// `mach_thread_self`: a send right to the port of the caller's thread.
    ThreadSelf,
    /// `mach_task_self`: a send right to the port of the caller's task.
    TaskSelf,
    /// `mach_host_self`: a send right to the name port of the host.
    HostSelf,
    /// `mach_print`: prints a string on the system's log.
    Print,
    /// A trap that has gone from the interface: its result is the null name.
    NullPort,
    /// `evc_wait` and `evc_wait_clear`: waits for the event of a device.
    EventWait,
    /// The traps that write to a device and want the answer as a message.
    DeviceWrite,
    /// `swtch_pri`: lets other threads run, also less urgent ones.
    SwitchPriority,
    /// `swtch`: lets other threads run.
    Switch,
    /// `thread_switch`: lets other threads run, by preference a certain one.
    ThreadSwitch,
    /// `vm_map`: maps a memory object.
    VmMap,
    /// `vm_allocate`: allocates memory.
    VmAllocate,
    /// `vm_deallocate`: unmaps memory.
    VmDeallocate,
    /// `task_create`: makes a child task.
    TaskCreate,
    /// `task_terminate`: ends a task.
    TaskTerminate,
    /// `task_suspend`: suspends a task.
    TaskSuspend,
    /// `task_set_special_port`: sets one of a task's special ports.
    TaskSetSpecialPort,
    /// `mach_port_allocate`: makes a right.
    PortAllocate,
    /// `mach_port_deallocate`: takes a reference from a right.
    PortDeallocate,
    /// `mach_port_insert_right`: gives a task a right.
    PortInsertRight,
    /// `mach_port_allocate_name`: makes a right with a chosen name.
    PortAllocateName,
    /// `thread_depress_abort`: ends the depression of a thread's priority.
    DepressAbort,
    /// `thread_set_self_state`: sets registers of the caller.
    SetSelfState,
    /// A number of the table without a trap: the result is an error.
    Invalid,
}

/// The number of the last entry of the table, as a positive number.
const LAST: i32 = 129;

impl Trap {
    /// Whether the number is that of [`Message`](Self::Message), the most frequent trap.
    #[inline]
    pub(crate) fn is_message(number: u64) -> bool {
        number as i32 == -25
    }

    /// The trap with the number that a program has left in RAX. `None`: the table has no such
    /// number, and the program gets an exception.
    pub fn of(number: u64) -> Option<Self> {
        // The upper half of RAX has no meaning.
        let number = (number as i32).checked_neg().filter(|number| (0..=LAST).contains(number))?;
        Some(match number {
            10..=13 | 55 | 56 => Self::NullPort,
            17 | 18 => Self::EventWait,
            25 => Self::Message,
            26 => Self::ReplyPort,
            27 => Self::ThreadSelf,
            28 => Self::TaskSelf,
            29 => Self::HostSelf,
            30 => Self::Print,
            39 | 40 => Self::DeviceWrite,
            59 => Self::SwitchPriority,
            60 => Self::Switch,
            61 => Self::ThreadSwitch,
            64 => Self::VmMap,
            65 => Self::VmAllocate,
            66 => Self::VmDeallocate,
            68 => Self::TaskCreate,
            69 => Self::TaskTerminate,
            70 => Self::TaskSuspend,
            71 => Self::TaskSetSpecialPort,
            72 => Self::PortAllocate,
            73 => Self::PortDeallocate,
            74 => Self::PortInsertRight,
            75 => Self::PortAllocateName,
            76 => Self::DepressAbort,
            77 => Self::SetSelfState,
            _ => Self::Invalid,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_beyond_the_table_have_no_trap() {
        let of = |number: i64| Trap::of(number as u64);
        assert_eq!(
            (of(-25), of(-129), of(0)),
            (Some(Trap::Message), Some(Trap::Invalid), Some(Trap::Invalid))
        );
        for number in [1, 25, -130, i64::from(i32::MIN), i64::from(i32::MAX)] {
            assert_eq!(of(number), None, "{number}");
        }
        // The number is the lower half of RAX, signed.
        assert_eq!(of(0xffff_ffe7), Some(Trap::Message));
        for number in -129..=0i32 {
            assert_eq!(
                Trap::is_message(number as u32 as u64),
                of(i64::from(number)) == Some(Trap::Message),
                "{number}"
            );
        }
    }
}

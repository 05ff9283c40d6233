//! Errors: the error word of Ipc and the codes of the other calls (ABI 11.7, 12.9; X.2 rule 7.10).
//! Both stand in the ErrorCode word of the UTCB.

/// Which phase of an IPC failed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum IpcPhase {
    /// The send phase; there was no receive phase.
    Send,
    /// The receive phase.
    Receive,
}

/// Why an IPC failed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum IpcErrorKind {
    /// The timeout expired before the transfer started.
    Timeout = 1,
    /// The partner does not exist, or not any more.
    NonExistingPartner = 2,
    /// Cancelled by ExchangeRegisters before the transfer started.
    Cancelled = 3,
    /// The message does not fit what the receiver accepts.
    MessageOverflow = 4,
    /// Transfer timeout by a page fault, the invoker's part (X.2 rule 7.24).
    XferTimeoutOwn = 5,
    /// Transfer timeout by a page fault, the partner's part.
    XferTimeoutPartner = 6,
    /// Aborted by ExchangeRegisters during the transfer.
    Aborted = 7,
}

impl IpcErrorKind {
    const fn from_code(code: u64) -> Option<Self> {
        Some(match code {
            1 => Self::Timeout,
            2 => Self::NonExistingPartner,
            3 => Self::Cancelled,
            4 => Self::MessageOverflow,
            5 => Self::XferTimeoutOwn,
            6 => Self::XferTimeoutPartner,
            7 => Self::Aborted,
            _ => return None,
        })
    }

    /// Whether the transfer had started, so that both partners get the error and the offset means
    /// something.
    pub const fn concerns_both(self) -> bool {
        self as u8 >= Self::MessageOverflow as u8
    }
}

/// A decoded error of Ipc. Word: bit 0 phase, 1..=3 kind, 4..=63 offset.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct IpcError {
    /// The phase that failed.
    pub phase: IpcPhase,
    /// The reason.
    pub kind: IpcErrorKind,
    /// Bytes of string data transferred; 0 for the first three kinds.
    pub offset: u64,
}

impl IpcError {
    /// An error before any transfer.
    pub const fn new(phase: IpcPhase, kind: IpcErrorKind) -> Self {
        Self { phase, kind, offset: 0 }
    }

    /// An error after `offset` bytes of string data.
    pub const fn with_offset(phase: IpcPhase, kind: IpcErrorKind, offset: u64) -> Self {
        Self { phase, kind, offset }
    }

    /// The error in an ErrorCode word, or nothing if bits 1..=3 are zero.
    pub const fn from_raw(raw: u64) -> Option<Self> {
        let Some(kind) = IpcErrorKind::from_code(raw >> 1 & 7) else { return None };
        let phase = if raw & 1 == 0 { IpcPhase::Send } else { IpcPhase::Receive };
        Some(Self { phase, kind, offset: raw >> 4 })
    }

    /// The ErrorCode word.
    pub const fn raw(self) -> u64 {
        self.offset << 4 | (self.kind as u64) << 1 | self.phase as u64
    }
}

/// ErrorCode of the system calls other than Ipc.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u64)]
pub enum ErrorCode {
    /// 1: the caller lacks the privilege.
    NoPrivilege = 1,
    /// 2: the thread is unavailable or invalid.
    InvalidThread = 2,
    /// 3: the space is invalid.
    InvalidSpace = 3,
    /// 4: the scheduler is invalid.
    InvalidScheduler = 4,
    /// 5: a parameter is invalid.
    InvalidParameter = 5,
    /// 6: the UTCB location or area is invalid.
    InvalidUtcbArea = 6,
    /// 7: the KIP area is invalid.
    InvalidKipArea = 7,
    /// 8: out of memory.
    NoMemory = 8,
}

impl ErrorCode {
    /// The error in an ErrorCode word; nothing for 0 (no error) and unknown values.
    pub const fn from_raw(raw: u64) -> Option<Self> {
        Some(match raw {
            1 => Self::NoPrivilege,
            2 => Self::InvalidThread,
            3 => Self::InvalidSpace,
            4 => Self::InvalidScheduler,
            5 => Self::InvalidParameter,
            6 => Self::InvalidUtcbArea,
            7 => Self::InvalidKipArea,
            8 => Self::NoMemory,
            _ => return None,
        })
    }

    /// The ErrorCode word.
    pub const fn raw(self) -> u64 {
        self as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rules: 7.10.
    #[test]
    fn ipc_error_word() {
        assert_eq!(IpcError::new(IpcPhase::Receive, IpcErrorKind::Timeout).raw(), 3);
        assert_eq!(IpcError::new(IpcPhase::Send, IpcErrorKind::NonExistingPartner).raw(), 4);
        for raw in [2, 3, 4, 5, 6, 7, 8, 9, 14, 15, 4096 << 4 | 9] {
            assert_eq!(IpcError::from_raw(raw).unwrap().raw(), raw);
        }
        assert_eq!(IpcError::from_raw(1), None);
        assert!(IpcErrorKind::MessageOverflow.concerns_both() && !IpcErrorKind::Cancelled.concerns_both());
    }

    #[test]
    fn error_codes() {
        for raw in 1..=8 {
            assert_eq!(ErrorCode::from_raw(raw).unwrap().raw(), raw);
        }
        assert_eq!(ErrorCode::from_raw(0), None);
        assert_eq!(ErrorCode::from_raw(9), None);
    }
}

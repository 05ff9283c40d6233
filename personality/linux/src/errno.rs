//! Linux' error numbers (asm-generic/errno-base.h, errno.h).

use unix::Error;

/// The error number of `error`.
pub fn number(error: Error) -> i32 {
    match error {
        Error::EPERM => 1,
        Error::ENOENT => 2,
        Error::ESRCH => 3,
        Error::EINTR => 4,
        Error::EIO => 5,
        Error::ENXIO => 6,
        Error::E2BIG => 7,
        Error::ENOEXEC => 8,
        Error::EBADF => 9,
        Error::ECHILD => 10,
        Error::EAGAIN => 11,
        Error::ENOMEM => 12,
        Error::EACCES => 13,
        Error::EFAULT => 14,
        Error::ENOTBLK => 15,
        Error::EBADR => 53,
        Error::EBUSY => 16,
        Error::EEXIST => 17,
        Error::EXDEV => 18,
        Error::ENODEV => 19,
        Error::ENOTDIR => 20,
        Error::EISDIR => 21,
        Error::EINVAL => 22,
        Error::ENFILE => 23,
        Error::EMFILE => 24,
        Error::ENOTTY => 25,
        Error::ETXTBSY => 26,
        Error::EFBIG => 27,
        Error::ENOSPC => 28,
        Error::ESPIPE => 29,
        Error::EROFS => 30,
        Error::EMLINK => 31,
        Error::EPIPE => 32,
        Error::EDOM => 33,
        Error::ERANGE => 34,
        Error::EDEADLK => 35,
        Error::ENAMETOOLONG => 36,
        Error::ENOLCK => 37,
        Error::ENOSYS => 38,
        Error::ENOTEMPTY => 39,
        Error::ELOOP => 40,
        Error::ENOMSG => 42,
        Error::EIDRM => 43,
        Error::ENODATA => 61,
        Error::ETIME => 62,
        Error::EPROTO => 71,
        Error::EOVERFLOW => 75,
        Error::ELIBBAD => 80,
        Error::EILSEQ => 84,
        Error::EUSERS => 87,
        Error::ENOTSOCK => 88,
        Error::EDESTADDRREQ => 89,
        Error::EMSGSIZE => 90,
        Error::EPROTOTYPE => 91,
        Error::ENOPROTOOPT => 92,
        Error::EPROTONOSUPPORT => 93,
        Error::ESOCKTNOSUPPORT => 94,
        Error::ENOTSUP | Error::EOPNOTSUPP => 95,
        Error::EAFNOSUPPORT => 97,
        Error::EADDRINUSE => 98,
        Error::EADDRNOTAVAIL => 99,
        Error::ENETDOWN => 100,
        Error::ENETUNREACH => 101,
        Error::ECONNABORTED => 103,
        Error::ECONNRESET => 104,
        Error::ENOBUFS => 105,
        Error::EISCONN => 106,
        Error::ENOTCONN => 107,
        Error::ETOOMANYREFS => 109,
        Error::ETIMEDOUT => 110,
        Error::ECONNREFUSED => 111,
        Error::EHOSTUNREACH => 113,
        Error::EALREADY => 114,
        Error::EINPROGRESS => 115,
        Error::ESTALE => 116,
        Error::ECANCELED => 125,
        Error::EOWNERDEAD => 130,
    }
}

/// The value in RAX with which a call returns this result.
pub fn result(result: Result<u64, Error>) -> u64 {
    result.unwrap_or_else(|error| (-i64::from(number(error))) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_numbers_are_distinct() {
        let mut seen = std::collections::BTreeMap::new();
        for error in Error::ALL {
            let other = seen.insert(number(*error), *error);
            let alias = [Some(Error::ENOTSUP), Some(Error::EOPNOTSUPP)];
            assert!(other.is_none() || alias.contains(&other), "{error:?} and {other:?}");
        }
        assert_eq!(result(Err(Error::ENOENT)) as i64, -2);
    }
}

//! What a server may have and has of the resources that are only counted.

/// Not as much is left as was asked for; nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaExceeded;

/// A limit and what is used of it. `used` never exceeds `limit`, whatever callers ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    limit: u64,
    used: u64,
}

impl Quota {
    /// A quota of `limit` units, of which none is used.
    pub const fn new(limit: u64) -> Quota {
        Quota { limit, used: 0 }
    }

    /// Uses `amount` more.
    ///
    /// # Errors
    /// [`QuotaExceeded`] if the limit would be passed.
    pub fn take(&mut self, amount: u64) -> Result<(), QuotaExceeded> {
        match self.used.checked_add(amount) {
            Some(used) if used <= self.limit => {
                self.used = used;
                Ok(())
            }
            _ => Err(QuotaExceeded),
        }
    }

    /// Gives back `amount`.
    ///
    /// # Panics
    /// If more is given back than was taken: root has lost count, and continuing would hand out
    /// what is not there.
    pub fn give_back(&mut self, amount: u64) {
        self.used = self.used.checked_sub(amount).expect("more given back than was taken");
    }

    /// How many units are used.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// How many units are left.
    pub fn left(&self) -> u64 {
        self.limit - self.used
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_holds_and_a_refused_request_changes_nothing() {
        let mut quota = Quota::new(10);
        quota.take(7).unwrap();
        assert_eq!(quota.take(4), Err(QuotaExceeded));
        assert_eq!(quota.take(u64::MAX), Err(QuotaExceeded));
        assert_eq!((quota.used(), quota.left()), (7, 3));
        quota.take(3).unwrap();
        quota.give_back(10);
        assert_eq!(quota.left(), 10);
    }

    #[test]
    #[should_panic(expected = "more given back")]
    fn losing_count_is_a_bug() {
        Quota::new(1).give_back(1);
    }
}

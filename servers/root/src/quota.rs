//! A server's limits of resources that are only counted, and how much of each it uses.

/// The error that a quota has less left than was asked for; nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaExceeded;

/// A limit of a resource and how much of it is used. `used` never exceeds `limit`, whatever the
/// arguments are.
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

    /// Counts `amount` units as used.
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

    /// Counts `amount` units as unused.
    ///
    /// # Panics
    /// If more units are given back than were taken: root's accounting is wrong then, and
    /// continuing would give out resources that do not exist.
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
    fn giving_back_more_than_was_taken_panics() {
        Quota::new(1).give_back(1);
    }
}

//! Keyed hashes, so that a peer cannot choose packets that meet in one place of a table or guess a
//! sequence number; and random numbers.

/// A key of SipHash.
#[derive(Clone, Copy)]
pub(crate) struct Key(u64, u64);

impl Key {
    pub(crate) fn new(bytes: [u8; 16]) -> Key {
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(word)
        };
        Key(word(0), word(8))
    }

    /// SipHash with one round for each word and three at the end.
    pub(crate) fn hash(self, words: &[u64]) -> u64 {
        let mut v = [
            self.0 ^ 0x736f_6d65_7073_6575,
            self.1 ^ 0x646f_7261_6e64_6f6d,
            self.0 ^ 0x6c79_6765_6e65_7261,
            self.1 ^ 0x7465_6462_7974_6573,
        ];
        for &word in words {
            v[3] ^= word;
            round(&mut v);
            v[0] ^= word;
        }
        let last = (words.len() as u64 * 8) << 56;
        v[3] ^= last;
        round(&mut v);
        v[0] ^= last;
        v[2] ^= 0xff;
        round(&mut v);
        round(&mut v);
        round(&mut v);
        v[0] ^ v[1] ^ v[2] ^ v[3]
    }
}

#[inline]
fn round(v: &mut [u64; 4]) {
    v[0] = v[0].wrapping_add(v[1]);
    v[2] = v[2].wrapping_add(v[3]);
    v[1] = v[1].rotate_left(13) ^ v[0];
    v[3] = v[3].rotate_left(16) ^ v[2];
    v[0] = v[0].rotate_left(32);
    v[2] = v[2].wrapping_add(v[1]);
    v[0] = v[0].wrapping_add(v[3]);
    v[1] = v[1].rotate_left(17) ^ v[2];
    v[3] = v[3].rotate_left(21) ^ v[0];
    v[2] = v[2].rotate_left(32);
}

/// Random numbers: the hash of a counter.
pub(crate) struct Random {
    key: Key,
    counter: u64,
}

impl Random {
    pub(crate) fn new(key: Key) -> Random {
        Random { key, counter: 0 }
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.counter += 1;
        self.key.hash(&[self.counter])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_keys_change_the_hash() {
        let key = Key::new([1; 16]);
        let hash = key.hash(&[1, 2, 3]);
        assert_eq!(hash, key.hash(&[1, 2, 3]));
        assert_ne!(hash, key.hash(&[1, 2, 4]));
        assert_ne!(hash, key.hash(&[1, 2]));
        assert_ne!(hash, Key::new([2; 16]).hash(&[1, 2, 3]));
    }

    /// The standard library's hasher is SipHash-1-3 with a key of zeros.
    #[test]
    fn the_hash_is_siphash_1_3() {
        use core::hash::Hasher;
        for words in [&[7][..], &[1, 2, 3], &[u64::MAX; 9]] {
            let mut library = std::collections::hash_map::DefaultHasher::new();
            words.iter().for_each(|&word| library.write_u64(word));
            assert_eq!(library.finish(), Key::new([0; 16]).hash(words));
        }
    }
}

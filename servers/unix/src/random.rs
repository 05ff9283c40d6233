//! The random source: a generator based on ChaCha20 (RFC 8439, section 2.3) whose earlier output
//! cannot be computed from its state.

/// A generator of random bytes. Each request is answered from blocks of a key that is replaced
/// afterwards, so that earlier output cannot be computed from the state.
pub struct Random {
    key: [u32; 8],
}

/// How many bytes are mixed into the key at a time.
const PIECE: usize = 24;

const CONSTANTS: [u32; 4] = [0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574];

fn quarter(state: &mut [u32; 16], [a, b, c, d]: [usize; 4]) {
    state[a] = state[a].wrapping_add(state[b]);
    state[d] = (state[d] ^ state[a]).rotate_left(16);
    state[c] = state[c].wrapping_add(state[d]);
    state[b] = (state[b] ^ state[c]).rotate_left(12);
    state[a] = state[a].wrapping_add(state[b]);
    state[d] = (state[d] ^ state[a]).rotate_left(8);
    state[c] = state[c].wrapping_add(state[d]);
    state[b] = (state[b] ^ state[c]).rotate_left(7);
}

/// The block function: 64 bytes from a key, a counter and a nonce.
fn block(key: &[u32; 8], counter: u32, nonce: [u32; 3]) -> [u8; 64] {
    let mut initial = [0; 16];
    initial[..4].copy_from_slice(&CONSTANTS);
    initial[4..12].copy_from_slice(key);
    initial[12] = counter;
    initial[13..].copy_from_slice(&nonce);
    let mut state = initial;
    for _ in 0..10 {
        for columns in [[0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15]] {
            quarter(&mut state, columns);
        }
        for diagonals in [[0, 5, 10, 15], [1, 6, 11, 12], [2, 7, 8, 13], [3, 4, 9, 14]] {
            quarter(&mut state, diagonals);
        }
    }
    let mut bytes = [0; 64];
    for (place, (word, first)) in bytes.chunks_exact_mut(4).zip(state.iter().zip(initial)) {
        place.copy_from_slice(&word.wrapping_add(first).to_le_bytes());
    }
    bytes
}

impl Random {
    /// A generator with a known key: [`Random::stir`] it before use.
    pub const fn new() -> Random {
        Random { key: [0; 8] }
    }

    /// Mixes unpredictable values into the key.
    pub fn stir(&mut self, entropy: [u64; 3]) {
        let [a, b, c] = entropy;
        let half = |word: u64| [word as u32, (word >> 32) as u32];
        let ([a0, a1], [b0, b1], [c0, c1]) = (half(a), half(b), half(c));
        self.key[0] ^= c1;
        self.key[7] = self.key[7].wrapping_add(c0);
        self.replace_key(&block(&self.key, a0 ^ c0, [a1, b0, b1]));
    }

    /// Mixes any number of bytes into the key.
    pub fn absorb(&mut self, bytes: &[u8]) {
        let (whole, rest) = bytes.as_chunks::<PIECE>();
        let mut last = [0; PIECE];
        last[..rest.len()].copy_from_slice(rest);
        for piece in whole.iter().chain([&last]) {
            let words = piece.as_chunks().0;
            self.stir([0, 1, 2].map(|word| u64::from_le_bytes(words[word])));
        }
        // The length tells bytes from others that end with more zeros.
        self.stir([bytes.len() as u64, 0, 0]);
    }

    /// Fills `bytes` with random bytes, and replaces the key.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        // Block 0 becomes the next key; the following blocks are the output.
        let (mut counter, mut nonce) = (1u32, 0);
        for piece in bytes.chunks_mut(64) {
            piece.copy_from_slice(&block(&self.key, counter, [nonce, 0, 0])[..piece.len()]);
            counter = counter.wrapping_add(1);
            if counter == 0 {
                (counter, nonce) = (1, nonce + 1);
            }
        }
        self.replace_key(&block(&self.key, 0, [0; 3]));
    }

    fn replace_key(&mut self, bytes: &[u8; 64]) {
        for (word, bytes) in self.key.iter_mut().zip(bytes.as_chunks().0) {
            *word = u32::from_le_bytes(*bytes);
        }
    }
}

impl Default for Random {
    fn default() -> Random {
        Random::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The test vector of RFC 8439, section 2.3.2.
    #[test]
    fn the_block_function_is_chacha20() {
        let key = core::array::from_fn(|word| {
            u32::from_le_bytes(core::array::from_fn(|byte| (4 * word + byte) as u8))
        });
        let bytes = block(&key, 1, [0x0900_0000, 0x4a00_0000, 0]);
        assert_eq!(bytes[..8], [0x10, 0xf1, 0xe7, 0xe4, 0xd1, 0x3b, 0x59, 0x15]);
        assert_eq!(bytes[56..], [0xcb, 0xd0, 0x83, 0xe8, 0xa2, 0x50, 0x3c, 0x4e]);
    }

    fn first_answer(mut random: Random) -> [u8; 32] {
        let mut bytes = [0; 32];
        random.fill(&mut bytes);
        bytes
    }

    /// What was absorbed changes the answers: each byte of a seed at each place, and its length.
    #[test]
    fn each_byte_that_is_absorbed_counts() {
        let with = |seed: &[u8]| {
            let mut random = Random::new();
            random.absorb(seed);
            first_answer(random)
        };
        let seed: Vec<u8> = (0..512_u32).map(|at| (at * 7) as u8).collect();
        let mut answers = vec![with(&[]), with(&[0]), with(&[0; 24]), with(&[0; 25]), with(&seed)];
        for at in 0..seed.len() {
            let mut other = seed.clone();
            other[at] ^= 1;
            answers.push(with(&other));
        }
        answers.extend((1..64).map(|less| with(&seed[less..])));
        let count = answers.len();
        answers.sort_unstable();
        answers.dedup();
        assert_eq!(answers.len(), count);
    }

    /// Two copies of one disk, started at different times: the same seed, and other clocks.
    #[test]
    fn the_same_seed_at_another_time_gives_other_bytes() {
        let started_at = |nanoseconds| {
            let mut random = Random::new();
            random.stir([nanoseconds, 0, 0]);
            random.absorb(&[9; 512]);
            first_answer(random)
        };
        assert_ne!(started_at(1), started_at(2));
        assert_eq!(started_at(1), started_at(1), "nothing else is mixed in here");
    }

    /// Bytes that others know do not undo what was mixed in before.
    #[test]
    fn known_bytes_leave_the_seed_in_effect() {
        let with = |seed: u64| {
            let mut random = Random::new();
            random.stir([seed, 0, 0]);
            (0..20).for_each(|_| random.absorb(&[0; 100]));
            first_answer(random)
        };
        assert_ne!(with(1), with(2));
    }

    #[test]
    fn answers_differ_and_depend_on_what_was_stirred_in() {
        let (mut one, mut other) = (Random::new(), Random::new());
        one.stir([1, 2, 3]);
        other.stir([1, 2, 4]);
        let mut answers = Vec::new();
        for random in [&mut one, &mut other] {
            for _ in 0..3 {
                let mut bytes = [0; 100];
                random.fill(&mut bytes);
                answers.push(bytes[..50].to_vec());
                answers.push(bytes[50..].to_vec());
            }
        }
        let count = answers.len();
        answers.sort();
        answers.dedup();
        assert_eq!(answers.len(), count);
        let ones: u32 = answers.iter().flatten().map(|byte| byte.count_ones()).sum();
        assert!((2200..2600).contains(&ones), "{ones} of 4800 bits are set");
    }
}

//! Inode bitmap wrappers.
use crate::bitmap::BitmapError;

/// Inode bitmap view with allocation helpers.
#[derive(Debug)]
pub struct InodeBitmap<'a> {
    data: &'a mut [u8],
    inodes_per_group: u32,
}

impl<'a> InodeBitmap<'a> {
    /// Creates a new inode bitmap view.
    pub fn new(data: &'a mut [u8], inodes_per_group: u32) -> Self {
        Self {
            data,
            inodes_per_group,
        }
    }

    /// Returns whether the inode is allocated.
    pub fn is_allocated(&self, inode_idx: u32) -> Option<bool> {
        Self::is_allocated_in(self.data, self.inodes_per_group, inode_idx)
    }

    /// Checks one bit through an immutable bitmap view.
    pub fn is_allocated_in(data: &[u8], inodes_per_group: u32, inode_idx: u32) -> Option<bool> {
        if inode_idx >= inodes_per_group {
            return None;
        }

        let byte_idx = (inode_idx / 8) as usize;
        let bit_idx = (inode_idx % 8) as u8;

        if byte_idx >= data.len() {
            return None;
        }

        Some((data[byte_idx] & (1 << bit_idx)) != 0)
    }

    /// Returns whether the inode is free.
    pub fn is_free(&self, inode_idx: u32) -> Option<bool> {
        self.is_allocated(inode_idx).map(|allocated| !allocated)
    }

    /// Returns the first free inode index.
    pub fn find_first_free(&self) -> Option<u32> {
        self.find_first_free_from(0)
    }

    /// Returns the first free inode index from `from` on.
    pub fn find_first_free_from(&self, from: u32) -> Option<u32> {
        let mut inode_idx = from;
        while inode_idx < self.inodes_per_group {
            let byte = *self.data.get((inode_idx / 8) as usize)?;
            let found = u32::from(!byte) >> (inode_idx % 8);
            if found != 0 {
                return Some(inode_idx + found.trailing_zeros())
                    .filter(|found| *found < self.inodes_per_group);
            }
            inode_idx = (inode_idx / 8 + 1) * 8;
        }
        None
    }

    /// Counts free inodes in the group.
    pub fn count_free(&self) -> u32 {
        let mut count = 0u32;

        for inode_idx in 0..self.inodes_per_group {
            if self.is_free(inode_idx) == Some(true) {
                count += 1;
            }
        }

        count
    }

    /// Counts allocated inodes in the group.
    pub fn count_allocated(&self) -> u32 {
        self.inodes_per_group - self.count_free()
    }

    /// Marks an inode as allocated.
    pub fn allocate(&mut self, inode_idx: u32) -> Result<(), BitmapError> {
        if inode_idx >= self.inodes_per_group {
            return Err(BitmapError::IndexOutOfRange);
        }

        let byte_idx = (inode_idx / 8) as usize;
        let bit_idx = (inode_idx % 8) as u8;

        if byte_idx >= self.data.len() {
            return Err(BitmapError::IndexOutOfRange);
        }

        if (self.data[byte_idx] & (1 << bit_idx)) != 0 {
            return Err(BitmapError::AlreadyAllocated);
        }

        self.data[byte_idx] |= 1 << bit_idx;
        Ok(())
    }

    /// Marks an inode as free.
    pub fn free(&mut self, inode_idx: u32) -> Result<(), BitmapError> {
        if inode_idx >= self.inodes_per_group {
            return Err(BitmapError::IndexOutOfRange);
        }

        let byte_idx = (inode_idx / 8) as usize;
        let bit_idx = (inode_idx % 8) as u8;

        if byte_idx >= self.data.len() {
            return Err(BitmapError::IndexOutOfRange);
        }

        if (self.data[byte_idx] & (1 << bit_idx)) == 0 {
            return Err(BitmapError::AlreadyFree);
        }

        self.data[byte_idx] &= !(1 << bit_idx);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn test_inode_bitmap_basic() {
        let mut data = vec![0u8; 32];
        data[0] = 0xFF;

        let bitmap = InodeBitmap::new(&mut data, 256);

        assert_eq!(bitmap.find_first_free(), Some(8));
        assert_eq!(bitmap.count_allocated(), 8);
    }
}

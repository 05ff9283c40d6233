mod capabilities;
mod device;
mod hostile;
mod model;
mod queues;
mod starting;

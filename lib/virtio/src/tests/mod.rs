mod capabilities;
mod device;
mod hostile;
mod left;
mod model;
mod queues;
mod starting;

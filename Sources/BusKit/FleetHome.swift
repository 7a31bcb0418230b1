// Re-exports FleetHome: a process that uses the bus finds the fleet through its home.
@_exported public import FleetHome

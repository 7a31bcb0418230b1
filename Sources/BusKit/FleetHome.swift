// A process that talks to the fleet finds it through its home.
@_exported public import FleetHome

import FleetSupervisor

@main struct Main {
    static func main() {
        SupervisorProcess.run()
    }
}

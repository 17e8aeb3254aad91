module polygrad

go 1.19
